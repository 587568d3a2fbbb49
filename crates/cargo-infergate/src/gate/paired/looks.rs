//! The looks: after every block, and what settles a case.

use super::evidence::{Bet, fewest_blocks, in_suite};
use crate::receipt::{Outcome, Shown};
use crate::stats::{hodges_lehmann, sample_std};

/// The chance that a suite of unchanged cases shows any of them slower: 1 %, over all looks together.
pub const LEVEL: f64 = 0.01;

/// The chance that a case at its limit is called within it, over all looks together. An interval's two ends each have it.
pub const PASS_LEVEL: f64 = 0.025;

/// No case is measured for longer.
pub const MAX_BLOCKS: usize = 40;

/// The blocks of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// ln of the ratio from which on a slowdown fails: ln 1.02.
    pub limit: f64,
    /// Standard deviation of a block, as it was expected before the first one.
    pub expected_std: Option<f64>,
    /// d of each block, in the order they were measured. It ends where the case was settled.
    pub differences: Vec<f64>,
}

/// Where a case stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The verdict; `None` while more blocks may change it.
    pub outcome: Option<Outcome>,
    /// Blocks the numbers below rest on.
    pub blocks: usize,
    /// Hodges-Lehmann estimate of ln(head / base); `None` without blocks.
    pub theta: Option<f64>,
    /// Lower end of an interval of 95 % that holds wherever the looking stopped; `None` below the blocks it takes (6).
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Whether head was shown to be slower or faster at the suite's level, at whatever limit.
    pub shown: Option<Shown>,
    /// Adjusted p of "slower", valid wherever the looking stopped; of "faster" where that was shown. `None` without blocks.
    pub p_adjusted: Option<f64>,
    /// Sample standard deviation of the blocks.
    pub block_std: Option<f64>,
}

/// The fewest blocks after which a case can pass: 6.
pub fn fewest_to_pass() -> usize {
    fewest_blocks(1.0 / PASS_LEVEL)
}

/// The fewest blocks after which a single slow case of a suite of `tests` can be called: 10 of five.
pub fn fewest_to_fail(tests: usize) -> usize {
    fewest_blocks(tests.max(1) as f64 / LEVEL)
}

/// What is known of a case while the looks are replayed.
#[derive(Debug, Clone)]
struct Case {
    bet: Bet,
    /// Wealth of the bets against "no slower", "no faster" and "at or above the limit".
    above: f64,
    below: f64,
    under_limit: f64,
    slower: bool,
    faster: bool,
    within: bool,
    /// The most that the evidence of "slower" and of "faster" was worth in the suite.
    most_slower: f64,
    most_faster: f64,
    settled: Option<(Outcome, usize)>,
}

impl Case {
    fn new(series: &Series) -> Self {
        Self {
            bet: Bet::new(series.limit, series.expected_std),
            above: 1.0,
            below: 1.0,
            under_limit: 1.0,
            slower: false,
            faster: false,
            within: false,
            most_slower: 0.0,
            most_faster: 0.0,
            settled: None,
        }
    }

    /// The block after `before`.
    fn take(&mut self, before: &[f64], difference: f64, limit: f64) {
        let scale = self.bet.scale(before);
        self.above *= Bet::factor(scale, difference);
        self.below *= Bet::factor(scale, -difference);
        self.under_limit *= Bet::factor(scale, limit - difference);
        self.within |= self.under_limit >= 1.0 / PASS_LEVEL;
    }

    fn settle(&mut self, series: &Series, blocks: usize) {
        let shown = self.slower || self.faster || self.within;
        let theta = shown.then(|| hodges_lehmann(&series.differences[..blocks])).flatten();
        let outcome = match theta {
            Some(theta) if self.slower && !self.within && theta >= series.limit => Outcome::Regressed,
            Some(theta) if self.faster && theta <= -series.limit => Outcome::Improved,
            // It looks improved, and more blocks may say so.
            Some(theta) if self.within && (theta > -series.limit || blocks == MAX_BLOCKS) => Outcome::WithinLimit,
            _ if blocks == MAX_BLOCKS => match self.interval(series, blocks) {
                (Some(low), Some(high)) if (high - low) / 2.0 <= series.limit => Outcome::Inconclusive,
                _ => Outcome::Unstable,
            },
            _ => return,
        };
        self.settled = Some((outcome, blocks));
    }

    fn interval(&self, series: &Series, blocks: usize) -> (Option<f64>, Option<f64>) {
        let (seen, evidence) = (&series.differences[..blocks], 1.0 / PASS_LEVEL);
        (self.bet.lower_bound(seen, evidence), self.bet.upper_bound(seen, evidence))
    }
}

/// Replays the looks over a suite whose cases were fixed before the first block. The answer has the order of `suite`.
///
/// - *Regressed*: the [evidence](super::Bet) of "slower" reached 1 / [`LEVEL`] in the suite, at this or an earlier look, and
///   the estimate is at or above the limit. *Improved* is the mirror image.
/// - *Within limit*: the evidence of "below the limit" reached 1 / [`PASS_LEVEL`]. A case that also looks improved stays
///   open, since more blocks may say so.
/// - After the last block: *unstable* when the interval is wider than twice the limit, else *inconclusive*.
pub fn stand(suite: &[Series]) -> Vec<Standing> {
    suite.iter().zip(replay(suite)).map(|(series, case)| standing(series, &case)).collect()
}

/// The outcomes of [`stand`] alone, without its numbers: what a simulation of many suites asks for.
pub fn outcomes(suite: &[Series]) -> Vec<Option<Outcome>> {
    settled(suite).into_iter().map(|settled| settled.map(|(outcome, _)| outcome)).collect()
}

/// The outcome of each case and the blocks it took, without the other numbers of [`stand`].
pub fn settled(suite: &[Series]) -> Vec<Option<(Outcome, usize)>> {
    replay(suite).into_iter().map(|case| case.settled).collect()
}

fn replay(suite: &[Series]) -> Vec<Case> {
    let mut cases: Vec<Case> = suite.iter().map(Case::new).collect();
    for blocks in 1..=MAX_BLOCKS {
        let open: Vec<usize> = (0..cases.len()).filter(|&at| cases[at].settled.is_none()).collect();
        // A look is taken when every open case has its blocks; a run that was cut short ends before it.
        if open.is_empty() || open.iter().any(|&at| suite[at].differences.len() < blocks) {
            break;
        }
        for &at in &open {
            let Series { differences, limit, .. } = &suite[at];
            cases[at].take(&differences[..blocks - 1], differences[blocks - 1], *limit);
        }
        // What was settled before stays in the suite with what it had.
        let above = in_suite(&cases.iter().map(|case| case.above).collect::<Vec<f64>>());
        let below = in_suite(&cases.iter().map(|case| case.below).collect::<Vec<f64>>());
        for &at in &open {
            let case = &mut cases[at];
            case.most_slower = case.most_slower.max(above[at]);
            case.most_faster = case.most_faster.max(below[at]);
            case.slower |= above[at] >= 1.0 / LEVEL;
            case.faster |= below[at] >= 1.0 / LEVEL;
            case.settle(&suite[at], blocks);
        }
    }
    cases
}

fn standing(series: &Series, case: &Case) -> Standing {
    let blocks = case.settled.map_or(series.differences.len(), |(_, blocks)| blocks).min(series.differences.len());
    let seen = &series.differences[..blocks];
    let (low, high) = case.interval(series, blocks);
    let (shown, most) = match (case.slower, case.faster) {
        (true, _) => (Some(Shown::Slower), case.most_slower),
        (false, true) => (Some(Shown::Faster), case.most_faster),
        (false, false) => (None, case.most_slower),
    };
    Standing {
        outcome: case.settled.map(|(outcome, _)| outcome),
        blocks,
        theta: hodges_lehmann(seen),
        low,
        high,
        shown,
        p_adjusted: (blocks > 0).then(|| (1.0 / most).min(1.0)),
        block_std: sample_std(seen),
    }
}
