//! Counts under load: requests that fail, and requests that a server lets starve.
//!
//! Both servers are started anew for each block, and within one a full or broken server fails many at once: a block is one event. Head is
//! called where the first blocks in which one side alone had any are all head's, so many that chance would do it with the level: of two
//! equal servers each of them is a coin's toss, whatever fails how often, and however often this is asked. It is also called where both
//! had some and head had more than chance explains, with each block as one batch ([`is_more_frequent`]): each look asks again at the same
//! level, but what is asked is that two intervals lie apart, which is rarer than the level by far. What is less is advisory.

use crate::receipt::{
    BlockRecord, Counter, CounterEvidence, Evidence, Name, Outcome, PairedReceipt, Reason, Side, Subject, Unit,
    VerdictRow, WindowRecord,
};
use infergate_core::stats::is_more_frequent;

use super::looks::{LEVEL, MAX_BLOCKS, Series, outcomes};
use super::verdict::series;

type OfWindow = fn(&WindowRecord) -> u64;

const COUNTS: [(&str, OfWindow); 2] =
    [("failed_requests", WindowRecord::failed), ("starved_requests", |window| window.starved)];

/// Two rows for each level.
pub(super) fn rows(receipt: &PairedReceipt) -> Vec<VerdictRow> {
    counts(receipt).into_iter().map(Count::row).collect()
}

/// What is counted of a level, in each block: hits and requests.
struct Count {
    subject: Subject,
    name: &'static str,
    base: Vec<(u64, u64)>,
    head: Vec<(u64, u64)>,
    level: f64,
}

fn counts(receipt: &PairedReceipt) -> Vec<Count> {
    let mut levels: Vec<(&str, u32)> = Vec::new();
    for window in receipt.blocks.iter().flat_map(|block| &block.windows) {
        if !levels.contains(&(&window.scenario, window.users)) {
            levels.push((&window.scenario, window.users));
        }
    }
    let level = LEVEL / (levels.len() * COUNTS.len()).max(1) as f64;
    let of_level = |(scenario, users): (&str, u32)| {
        let plural = if users == 1 { "" } else { "s" };
        let subject = Name::new("load", &format!("{scenario}/{users} user{plural}"));
        let subject = subject.map_or(Subject::Process, Subject::Named);
        COUNTS.map(|(name, count)| {
            let of_side = |side| {
                batches(&receipt.blocks, count, |window| {
                    window.side == side && window.scenario == scenario && window.users == users
                })
            };
            Count { subject: subject.clone(), name, base: of_side(Side::Base), head: of_side(Side::Head), level }
        })
    };
    levels.into_iter().flat_map(of_level).collect()
}

impl Count {
    /// How many of the first blocks in which one side alone had any are head's.
    fn heads_first(&self) -> usize {
        let one_sided = self.base.iter().zip(&self.head).filter(|(base, head)| (base.0 == 0) != (head.0 == 0));
        one_sided.take_while(|(_, head)| head.0 > 0).count()
    }

    /// So many of them show that head is worse.
    fn heads_needed(&self) -> usize {
        (1.0 / self.level).log2().ceil() as usize
    }

    /// Head alone had some in most blocks, and in too few yet.
    fn is_pending(&self) -> bool {
        let (heads, blocks) = (self.heads_first(), self.head.len());
        2 * heads >= blocks && heads < self.heads_needed() && self.base.iter().all(|base| base.0 == 0) && heads > 0
    }

    fn row(self) -> VerdictRow {
        let total = |blocks: &[(u64, u64)]| blocks.iter().copied().fold((0, 0), add);
        let (in_base, in_head) = (total(&self.base), total(&self.head));
        let counter = |(hits, _): (u64, u64)| Some(Counter { min: hits, max: hits });
        let evidence = Evidence::Counter(CounterEvidence {
            name: self.name.into(),
            unit: Unit::Number,
            base: counter(in_base),
            head: counter(in_head),
            tolerance: 0.0,
        });
        let share = |(hits, issued): (u64, u64)| hits as f64 / issued.max(1) as f64;
        let is_more = self.heads_first() >= self.heads_needed() || is_more_frequent(&self.head, &self.base, self.level);
        if share(in_head) <= share(in_base) {
            return VerdictRow::new(self.subject, Outcome::Pass, evidence);
        }
        let outcome = if is_more { Outcome::CounterRegressed } else { Outcome::Advisory };
        let reason = Reason::MoreFail { failed: in_head.0, issued: in_head.1, most_before: share(in_base) };
        VerdictRow::new(self.subject, outcome, evidence).because(reason)
    }
}

/// Whether more blocks may show that requests fail in head alone.
pub(super) fn is_pending(receipt: &PairedReceipt) -> bool {
    receipt.servers.is_none() && receipt.blocks.len() < MAX_BLOCKS && counts(receipt).iter().any(Count::is_pending)
}

/// Whether a number under load is regressed, or a count of its requests is.
pub(super) fn is_decided(receipt: &PairedReceipt) -> bool {
    // Of servers that run already blocks alone decide nothing.
    if receipt.servers.is_some() || receipt.cases.iter().all(|case| case.load.is_none()) {
        return false;
    }
    let suite: Vec<Series> = series(&receipt.cases, &receipt.blocks).into_iter().map(|(_, series)| series).collect();
    outcomes(&suite, 0).contains(&Some(Outcome::Regressed))
        || rows(receipt).iter().any(|row| row.outcome == Outcome::CounterRegressed)
}

/// Hits and requests of each block that has such windows.
fn batches(blocks: &[BlockRecord], count: OfWindow, is_its: impl Fn(&WindowRecord) -> bool) -> Vec<(u64, u64)> {
    let of_block = |block: &BlockRecord| {
        let own = block.windows.iter().filter(|window| is_its(window));
        own.map(|window| (count(window), window.issued)).reduce(add)
    };
    blocks.iter().filter_map(of_block).collect()
}

fn add((hits, issued): (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (hits.saturating_add(other.0), issued.saturating_add(other.1))
}
