//! Counts under load: failed requests, starved requests, answers that differ from those to single requests, and the length of answers.
//!
//! Both servers are started anew for each block, and a full or broken server fails many requests at once: a block is one event.
//! Under equal servers, a block in which one side alone is worse is a fair coin toss. The rule [bets](COIN_STAKE) on head; head
//! is regressed once the bet is worth 1 / level, which equal servers reach at any look with a chance of at most the level.
//!
//! Head is also regressed if its rate is higher than chance explains, with each block as one batch ([`is_more_frequent`]). Each
//! look repeats that test at the level; it errs far less often, since its two intervals must lie apart. Smaller differences are
//! advisory.
//!
//! Servers that run already are not started anew: all blocks of a pair of them are one batch, and one toss.

use infergate_core::load::Arrivals;
use infergate_core::stats::is_more_frequent;
use infergate_receipts::{
    BlockRecord, BlocksWorse, Counter, CounterEvidence, Evidence, Outcome, PairedCase, PairedReceipt, Reason, Side,
    Subject, Unit, VerdictRow, WindowRecord,
};

use super::evidence::SUITE_LEVEL;
use super::sequential::outcomes;
use super::series::{MAX_BLOCKS, Series, series};

/// The fraction of a bet's worth that is put on the next block in which one side alone is worse. Nine blocks in a row against
/// head multiply the bet by 426; one against base costs about five of them.
const COIN_STAKE: f64 = 0.96;

/// The |ln ratio| above which the texts of a block's answers to the same prompts differ in length.
const OTHER_LENGTH: f64 = 0.03;

/// A number that is counted in windows.
#[derive(Clone, Copy)]
struct CountKind {
    name: &'static str,
    /// The count of a window, and of how many requests or answers.
    count: fn(&WindowRecord) -> (u64, u64),
}

/// Two of requests and two of answers, which share the level.
const COUNTS: [CountKind; 4] = [
    CountKind { name: "failed_requests", count: |window| (window.failed(), window.issued) },
    CountKind { name: "starved_requests", count: |window| (window.starved, window.issued) },
    CountKind { name: "changed_answers", count: |window| (window.answers.changed, window.answers.repeated) },
    CountKind { name: "answer_bytes", count: |window| (window.answers.compared_bytes, window.answers.compared) },
];

/// Two rows for each level, and two more if its answers were compared.
pub(super) fn rows(receipt: &PairedReceipt) -> Vec<VerdictRow> {
    counts(receipt).into_iter().map(Count::row).collect()
}

/// What is counted of a level, in each block: hits and requests, or bytes and answers.
struct Count {
    subject: Subject,
    what: CountKind,
    base: Vec<(u64, u64)>,
    head: Vec<(u64, u64)>,
    /// The entries are pairs of servers instead of blocks.
    is_of_pairs: bool,
    level: f64,
}

/// What a bet on one side is worth after all blocks, and the most that it was worth after any.
struct CoinBet {
    now: f64,
    most: f64,
    /// Blocks in which this side alone was worse, less those in which the other one was.
    lead: isize,
}

fn counts(receipt: &PairedReceipt) -> Vec<Count> {
    let mut levels: Vec<(&str, u32)> = Vec::new();
    for window in receipt.blocks.iter().flat_map(|block| &block.windows) {
        if !levels.contains(&(&window.scenario, window.users)) {
            levels.push((&window.scenario, window.users));
        }
    }
    let level = SUITE_LEVEL / (levels.len() * COUNTS.len()).max(1) as f64;
    let of_level = |(scenario, users): (&str, u32), what: CountKind| {
        let subject = Subject::Load(format!("{scenario}/{}", Arrivals::Closed { users }.name()));
        let of_side = |side| {
            let is_its =
                |window: &&WindowRecord| window.side == side && window.scenario == scenario && window.users == users;
            let of_block = |block: &BlockRecord| block.windows.iter().filter(is_its).map(what.count).reduce(add);
            by_batch(receipt.blocks.iter().filter_map(of_block).collect(), receipt.servers)
        };
        Count {
            subject,
            what,
            base: of_side(Side::Base),
            head: of_side(Side::Head),
            is_of_pairs: receipt.servers.is_some(),
            level,
        }
    };
    let all = levels.into_iter().flat_map(|level| COUNTS.map(|what| (level.0, of_level(level, what))));
    // If servers need not repeat their answers, none are compared.
    let is_compared = |(scenario, count): &(&str, Count)| {
        total(&count.head).1 > 0 && (!count.is_length() || are_comparable(receipt, scenario))
    };
    all.filter(is_compared).map(|(_, count)| count).collect()
}

/// The counts of each block. Servers that run already take turns in pairs: the blocks of a pair are one batch.
fn by_batch(of_blocks: Vec<(u64, u64)>, pairs: Option<usize>) -> Vec<(u64, u64)> {
    let Some(pairs) = pairs else { return of_blocks };
    let of_pair = |pair: usize| of_blocks.iter().skip(pair).step_by(pairs.max(1)).copied().reduce(add);
    (0..pairs).map_while(of_pair).collect()
}

/// Whether answers should have the same length. Not if an output change was allowed, and not from servers that run already, whose
/// outputs can differ from process to process.
fn are_comparable(receipt: &PairedReceipt, scenario: &str) -> bool {
    let is_of = |case: &PairedCase| case.load.as_ref().is_some_and(|load| load.scenario == scenario);
    let is_other = |case: &PairedCase| is_of(case) && case.base_output.sha256 != case.head_output.sha256;
    receipt.servers.is_none() && !receipt.cases.iter().any(is_other)
}

impl Count {
    /// Whether it counts bytes of answers, of which either side can have too few.
    fn is_length(&self) -> bool {
        Unit::of(self.what.name) == Unit::Bytes
    }

    /// Which side alone is worse in a block: it has hits, or the shorter answers.
    fn worse(&self, (base, head): (&(u64, u64), &(u64, u64))) -> Option<Side> {
        if self.is_length() {
            let ratio = length_ratio(*base, *head)?;
            return (ratio.abs() > OTHER_LENGTH).then_some(if ratio < 0.0 { Side::Head } else { Side::Base });
        }
        match (base.0 > 0, head.0 > 0) {
            (true, false) => Some(Side::Base),
            (false, true) => Some(Side::Head),
            _ => None,
        }
    }

    /// The bet that head is worse; for lengths also the bet that base is, whose answers are shorter then.
    fn bets(&self) -> Vec<CoinBet> {
        let worse: Vec<Side> = self.base.iter().zip(&self.head).filter_map(|pair| self.worse(pair)).collect();
        let sides = if self.is_length() { &[Side::Head, Side::Base][..] } else { &[Side::Head] };
        let on = |side: &Side| {
            let mut bet = CoinBet { now: 1.0, most: 1.0, lead: 0 };
            for found in &worse {
                let (factor, won) = if found == side { (1.0 + COIN_STAKE, 1) } else { (1.0 - COIN_STAKE, -1) };
                bet.now *= factor;
                bet.most = bet.most.max(bet.now);
                bet.lead += won;
            }
            bet
        };
        sides.iter().map(on).collect()
    }

    /// What a bet has to be worth for a verdict.
    fn needed(&self) -> f64 {
        self.bets().len() as f64 / self.level
    }

    fn is_shown(&self) -> bool {
        self.bets().iter().any(|bet| bet.most >= self.needed())
    }

    /// Whether more blocks may show it: one side leads by half of all blocks or more, and the blocks left are enough.
    fn is_pending(&self) -> bool {
        let (blocks, left) = (self.head.len(), MAX_BLOCKS.saturating_sub(self.head.len()));
        let reach =
            |bet: &CoinBet| bet.now * (1.0 + COIN_STAKE).powi(i32::try_from(left).unwrap_or(i32::MAX)) >= self.needed();
        let leads = |bet: &CoinBet| bet.lead > 0 && 2 * bet.lead.unsigned_abs() >= blocks;
        !self.is_shown() && self.bets().iter().any(|bet| leads(bet) && reach(bet))
    }

    fn row(self) -> VerdictRow {
        let (in_base, in_head) = (total(&self.base), total(&self.head));
        let counter = |(hits, _): (u64, u64)| Some(Counter { min: hits, max: hits });
        let evidence = Evidence::Counter(CounterEvidence {
            name: self.what.name.into(),
            unit: Unit::of(self.what.name),
            base: counter(in_base),
            head: counter(in_head),
            head_twice: None,
            tolerance: if self.is_length() { OTHER_LENGTH } else { 0.0 },
        });
        let row = |outcome| VerdictRow::new(self.subject.clone(), outcome, evidence);
        let worse = |blocks: &[(u64, u64)]| blocks.iter().filter(|block| block.0 > 0).count();
        let blocks = BlocksWorse { base: worse(&self.base), head: worse(&self.head), of: self.head.len() };
        let share = |(hits, issued): (u64, u64)| hits as f64 / issued.max(1) as f64;
        let (is_more, is_other, reason) = if self.is_length() {
            let is_other = length_ratio(in_base, in_head).is_some_and(|ratio| ratio.abs() > OTHER_LENGTH);
            (self.is_shown(), is_other, Reason::OtherLengths { answers: in_head.1 })
        } else {
            let reason = Reason::MoreFail {
                failed: in_head.0,
                issued: in_head.1,
                most_before: share(in_base),
                blocks: (!self.is_of_pairs).then_some(blocks),
            };
            // One block of base in which all requests fail must not hide that some fail in each block of head.
            let is_other = blocks.head > blocks.base || share(in_head) > share(in_base);
            (self.is_shown() || is_more_frequent(&self.head, &self.base, self.level), is_other, reason)
        };
        match (is_more, is_other) {
            (true, _) => row(Outcome::CounterRegressed).because(reason),
            (false, true) => row(Outcome::Advisory).because(reason),
            (false, false) => row(Outcome::Pass),
        }
    }
}

/// ln(head / base) of the text of answers to the same prompts; `None` without answers.
fn length_ratio(base: (u64, u64), head: (u64, u64)) -> Option<f64> {
    let each = |(bytes, answers): (u64, u64)| (bytes > 0 && answers > 0).then(|| bytes as f64 / answers as f64);
    Some((each(head)? / each(base)?).ln())
}

fn total(blocks: &[(u64, u64)]) -> (u64, u64) {
    blocks.iter().copied().fold((0, 0), add)
}

/// Whether more blocks may show that one side alone is worse; for servers that run already, whether a pair is not measured yet.
pub(super) fn is_pending(receipt: &PairedReceipt) -> bool {
    let done = receipt.blocks.len();
    done < MAX_BLOCKS
        && match receipt.servers {
            Some(pairs) => done < pairs,
            None => counts(receipt).iter().any(Count::is_pending),
        }
}

/// Whether a number under load is regressed, or a count of its requests is.
pub(super) fn is_decided(receipt: &PairedReceipt) -> bool {
    // Blocks alone decide nothing about servers that run already.
    if receipt.servers.is_some() || receipt.cases.iter().all(|case| case.load.is_none()) {
        return false;
    }
    let suite: Vec<Series> =
        series(&receipt.cases, &receipt.blocks, false).into_iter().map(|(_, series)| series).collect();
    outcomes(&suite, 0).contains(&Some(Outcome::Regressed))
        || rows(receipt).iter().any(|row| row.outcome == Outcome::CounterRegressed)
}

fn add((hits, issued): (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (hits.saturating_add(other.0), issued.saturating_add(other.1))
}
