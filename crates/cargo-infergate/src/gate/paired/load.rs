//! Counts under load: requests that fail, and requests that a server lets starve.
//!
//! The first one is called where base had none. Where base had some, too, head must have more than chance explains, with each block as
//! one batch ([`is_more_frequent`]): both servers are started for it anew, and within one a full or broken server fails many at once.
//! Each look asks again at the same level; what is asked is that two intervals lie apart, which is rarer than the level by far.

use crate::receipt::{
    BlockRecord, Counter, CounterEvidence, Evidence, Name, Outcome, PairedReceipt, Reason, Side, Subject, Unit,
    VerdictRow, WindowRecord,
};
use infergate_core::stats::is_more_frequent;

use super::looks::{LEVEL, Series, outcomes};
use super::verdict::series;

type Count = fn(&WindowRecord) -> u64;

const COUNTS: [(&str, Count); 2] =
    [("failed_requests", WindowRecord::failed), ("starved_requests", |window| window.starved)];

/// Two rows for each level.
pub(super) fn rows(receipt: &PairedReceipt) -> Vec<VerdictRow> {
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
            row(subject.clone(), name, &of_side(Side::Base), &of_side(Side::Head), level)
        })
    };
    levels.into_iter().flat_map(of_level).collect()
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
fn batches(blocks: &[BlockRecord], count: Count, is_its: impl Fn(&WindowRecord) -> bool) -> Vec<(u64, u64)> {
    let of_block = |block: &BlockRecord| {
        let own = block.windows.iter().filter(|window| is_its(window));
        own.map(|window| (count(window), window.issued)).reduce(add)
    };
    blocks.iter().filter_map(of_block).collect()
}

fn add((hits, issued): (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (hits.saturating_add(other.0), issued.saturating_add(other.1))
}

fn row(subject: Subject, name: &str, base: &[(u64, u64)], head: &[(u64, u64)], level: f64) -> VerdictRow {
    let total = |blocks: &[(u64, u64)]| blocks.iter().copied().fold((0, 0), add);
    let (in_base, in_head) = (total(base), total(head));
    let counter = |(hits, _): (u64, u64)| Some(Counter { min: hits, max: hits });
    let evidence = Evidence::Counter(CounterEvidence {
        name: name.into(),
        unit: Unit::Number,
        base: counter(in_base),
        head: counter(in_head),
        tolerance: 0.0,
    });
    let share = |(hits, issued): (u64, u64)| hits as f64 / issued.max(1) as f64;
    if share(in_head) <= share(in_base) {
        return VerdictRow::new(subject, Outcome::Pass, evidence);
    }
    let is_more = in_base.0 == 0 || is_more_frequent(head, base, level);
    let outcome = if is_more { Outcome::CounterRegressed } else { Outcome::Advisory };
    let reason = Reason::MoreFail { failed: in_head.0, issued: in_head.1, most_before: share(in_base) };
    VerdictRow::new(subject, outcome, evidence).because(reason)
}
