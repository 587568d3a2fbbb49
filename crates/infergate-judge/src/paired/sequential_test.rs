//! One test, of a case's median or of its mean, while the looks are replayed.

use super::evidence::{Bet, PASS_LEVEL, SUITE_LEVEL};
use super::series::{CaseState, MAX_BLOCKS, Series};
use infergate_core::stats::{finite, hodges_lehmann, robust_std};
use infergate_receipts::{Outcome, Shown};

/// The number of blocks from which on their spread tells whether the limit can be decided.
const BLOCKS_FOR_NOISE: usize = 8;

/// The deviation of blocks, in limits, above which the blocks of a gate do not decide the limit.
const TOO_NOISY: f64 = 1.5;

/// The largest effect of code placement on a mean over the placements: ln 1.1. Of 70 changes that do no more work none moved it
/// by more than 0.06 (docs/evidence/code-placement.md).
const MAX_PLACEMENT_EFFECT: f64 = 0.0953;

/// The chance at a look that head seems slower at a placement where it is not.
const PLACEMENT_LEVEL: f64 = 0.1;

/// What is known after the blocks so far.
#[derive(Debug)]
pub struct Test<'a> {
    /// The blocks that it tests.
    pub series: &'a Series,
    /// The bets against "no slower" and "no faster".
    change: Bet,
    /// The bet against "at or above the limit".
    limit: Bet,
    /// Its weight in the suite.
    pub weight: f64,
    /// Wealth of the bets against "no slower", "no faster" and "at or above the limit".
    pub wealth_slower: f64,
    pub wealth_faster: f64,
    wealth_within: f64,
    /// Whether a look has shown "slower", "faster", or "below the limit".
    slower: bool,
    faster: bool,
    within: bool,
    /// The largest adjusted evidence of "slower" and of "faster".
    most_slower: f64,
    most_faster: f64,
    /// How it ended. From then on it takes no block.
    pub settled: Option<Settled>,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    pub outcome: Outcome,
    /// After how many blocks.
    pub blocks: usize,
    /// ln of the ratio that decided it.
    pub limit: f64,
}

impl<'a> Test<'a> {
    pub fn new(series: &'a Series, change: Bet, limit: Bet, weight: f64) -> Self {
        Self {
            series,
            change,
            limit,
            weight,
            wealth_slower: 1.0,
            wealth_faster: 1.0,
            wealth_within: 1.0,
            slower: false,
            faster: false,
            within: false,
            most_slower: 0.0,
            most_faster: 0.0,
            settled: None,
        }
    }

    /// Takes the last of `blocks` blocks.
    pub fn add_block(&mut self, blocks: usize) {
        let series = self.series;
        let Some((&difference, before)) = series.differences.get(..blocks).and_then(<[f64]>::split_last) else {
            return;
        };
        let spread = robust_std(before);
        let change = self.change.scale_by(spread, before.len());
        self.wealth_slower *= Bet::factor(change, difference);
        self.wealth_faster *= Bet::factor(change, -difference);
        self.wealth_within *= Bet::factor(self.limit.scale_by(spread, before.len()), series.limit - difference);
        self.within |= self.wealth_within >= 1.0 / PASS_LEVEL;
    }

    /// Notes its adjusted evidence of "slower" and of "faster" at this look.
    pub fn note_adjusted(&mut self, (slower, faster): (f64, f64)) {
        if self.settled.is_none() {
            self.most_slower = self.most_slower.max(slower);
            self.most_faster = self.most_faster.max(faster);
            self.slower |= slower >= 1.0 / SUITE_LEVEL;
            self.faster |= faster >= 1.0 / SUITE_LEVEL;
        }
    }

    /// The look after `blocks` blocks. The test of a mean gets the `median` test of its case. If the median regressed, the mean
    /// ends, since the case has failed. A mean waits for no improvement, since the median shows it.
    pub fn try_to_settle(&mut self, blocks: usize, median: Option<&Self>) {
        let (limit, is_mean, is_last) = (self.series.limit, median.is_some(), self.series.ends_with(blocks));
        let outcome = match self.estimate(blocks) {
            Some(estimate) if self.slower && !self.within && estimate >= limit => {
                let is_stall = median.is_some_and(|median| self.is_stall(estimate, median.series, blocks));
                if is_stall || estimate >= MAX_PLACEMENT_EFFECT {
                    Some(Outcome::Regressed)
                } else {
                    self.above_limit(blocks)
                }
            }
            Some(estimate) if self.faster && estimate <= -limit && (self.within || !is_mean) => Some(Outcome::Improved),
            // A median that looks improved stays open, since more blocks may show it.
            Some(estimate) if self.within && (estimate > -limit || is_mean || is_last) => Some(Outcome::WithinLimit),
            _ => None,
        };
        let has_failed = median.and_then(|median| median.settled).is_some_and(|end| end.outcome == Outcome::Regressed);
        self.settle_as(outcome.or(has_failed.then_some(Outcome::Advisory)), blocks);
    }

    /// Whether the mean rose more than the median by at least the difference of their limits. Code placement moves all samples,
    /// so mean and median alike.
    fn is_stall(&self, estimate: f64, median: &Series, blocks: usize) -> bool {
        let of_median = median.differences.get(..blocks).and_then(hodges_lehmann);
        of_median.is_some_and(|of_median| estimate - of_median >= self.series.limit - median.limit)
    }

    fn settle_as(&mut self, outcome: Option<Outcome>, blocks: usize) {
        match (self.settled, outcome) {
            (Some(_), _) => {}
            (None, Some(outcome)) => self.settled = Some(Settled { outcome, blocks, limit: self.series.limit }),
            // A test that looks improved goes on, since more blocks may show it.
            (None, None) if is_too_noisy(self.series, blocks) && !self.looks_improved(blocks) => {
                self.settle_by_widest(blocks)
            }
            (None, None) => {}
        }
    }

    /// Ends a test that the last block did not settle. If its time is used up, it stays open unless the wider limit is excluded.
    ///
    /// If a mean's interval is wide and not above zero, bursts of the machine are as large as a stall would be: that is shown and
    /// decides nothing. An interval above zero is no such noise, since bursts hit both sides.
    pub fn close(&mut self, is_mean: bool) {
        let series = self.series;
        let blocks = series.differences.len().min(MAX_BLOCKS);
        self.settle_by_widest(blocks);
        if self.settled.is_some() || blocks < MAX_BLOCKS {
            return;
        }
        let is_narrow = |low: f64, high: f64| (high - low) / 2.0 <= series.limit;
        let outcome = match (self.interval(blocks), is_mean) {
            (Some((low, high)), false) if is_narrow(low, high) => Outcome::Inconclusive,
            (_, false) => Outcome::Unstable,
            (Some((low, high)), true) if low <= 0.0 && !is_narrow(low, high) => Outcome::Advisory,
            // Without an interval nothing shows that it is noise.
            (_, true) => Outcome::Inconclusive,
        };
        self.settled = Some(Settled { outcome, blocks, limit: series.limit });
    }

    /// Passes an open test if a slowdown by the wider limit is excluded. A test that is within its own limit and looked improved
    /// passes by its own limit.
    fn settle_by_widest(&mut self, blocks: usize) {
        let series = self.series;
        if self.settled.is_some() || series.widest <= series.limit {
            return;
        }
        let estimate = series.differences.get(..blocks).and_then(hodges_lehmann);
        let is_below = estimate.is_some_and(|estimate| estimate < series.limit);
        if is_below && self.interval(blocks).is_some_and(|(_, high)| high < series.widest) {
            let limit = if self.within { series.limit } else { series.widest };
            self.settled = Some(Settled { outcome: Outcome::WithinLimit, blocks, limit });
        }
    }

    fn looks_improved(&self, blocks: usize) -> bool {
        self.interval(blocks).is_some_and(|(_, high)| high <= -self.series.limit)
    }

    /// More work is slower at every placement, layout noise is not. `None` while it can be either.
    fn above_limit(&self, blocks: usize) -> Option<Outcome> {
        let placements = differences_at_placements(self.series, blocks);
        if placements.iter().all(|seen| is_slower(seen)) {
            return Some(Outcome::Regressed);
        }
        let excludes = |seen: &Vec<f64>| median_at_most(seen, PASS_LEVEL).is_some_and(|most| most < self.series.limit);
        placements.iter().any(excludes).then_some(Outcome::Layout)
    }

    /// The estimate, which takes most of the time of a look; `None` while nothing is shown, since it is not needed then.
    fn estimate(&self, blocks: usize) -> Option<f64> {
        let shown = self.slower || self.faster || self.within;
        shown.then(|| hodges_lehmann(self.series.differences.get(..blocks)?)).flatten()
    }

    /// The interval after `blocks` blocks, from all of them. It agrees with what earlier looks have shown and includes the
    /// estimate, so that no number of a row contradicts another.
    fn interval(&self, blocks: usize) -> Option<(f64, f64)> {
        let series = self.series;
        let (seen, evidence) = (series.differences.get(..blocks)?, 1.0 / PASS_LEVEL);
        let (mut low, mut high) = (self.change.lower_bound(seen, evidence)?, self.limit.upper_bound(seen, evidence)?);
        if self.slower {
            low = low.max(0.0);
        }
        if self.faster {
            high = high.min(0.0);
        }
        if self.within {
            high = high.min(series.limit);
        }
        let estimate = hodges_lehmann(seen)?;
        Some((low.min(estimate), high.max(estimate)))
    }

    /// Its outcome and its numbers.
    pub fn state(&self) -> CaseState {
        let series = self.series;
        let all = series.differences.len();
        let blocks = self.settled.map_or(all, |settled| settled.blocks).min(all);
        let seen = &series.differences[..blocks];
        let (shown, most) = match (self.slower, self.faster) {
            (true, _) => (Some(Shown::Slower), self.most_slower),
            (false, true) => (Some(Shown::Faster), self.most_faster),
            (false, false) => (None, self.most_slower),
        };
        let outcome = self.settled.map(|settled| settled.outcome);
        let slower_at = || {
            let placements = differences_at_placements(series, blocks);
            (placements.iter().filter(|seen| is_slower(seen)).count(), placements.len())
        };
        CaseState {
            outcome,
            blocks,
            limit: self.settled.map_or(series.limit, |settled| settled.limit),
            slower_at: (outcome == Some(Outcome::Layout)).then(slower_at),
            log_ratio: hodges_lehmann(seen),
            log_interval: self.interval(blocks),
            shown,
            p_adjusted: (blocks > 0).then(|| (1.0 / most).min(1.0)),
            mean: None,
        }
    }
}

/// Whether these blocks vary too much to decide the limit within the blocks of a gate.
fn is_too_noisy(series: &Series, blocks: usize) -> bool {
    let seen = series.differences.get(..blocks).filter(|seen| seen.len() >= BLOCKS_FOR_NOISE);
    seen.and_then(robust_std).is_some_and(|std| std > TOO_NOISY * series.limit)
}

/// d at each placement that the first `blocks` blocks visited.
fn differences_at_placements(series: &Series, blocks: usize) -> Vec<Vec<f64>> {
    let seen = |of: &Vec<(usize, f64)>| of.iter().filter(|(block, _)| *block < blocks).map(|(_, d)| *d).collect();
    series.placements.iter().map(seen).filter(|seen: &Vec<f64>| !seen.is_empty()).collect()
}

/// Whether head is shown to be slower at a placement, by its differences there. That takes at least four of them.
fn is_slower(seen: &[f64]) -> bool {
    let mirrored: Vec<f64> = seen.iter().map(|d| -d).collect();
    median_at_most(&mirrored, PLACEMENT_LEVEL).is_some_and(|most| most < 0.0)
}

/// The upper bound of the median at this `level`, by order statistics; `None` for too few values.
fn median_at_most(values: &[f64], level: f64) -> Option<f64> {
    let mut values = finite(values)?.to_vec();
    values.sort_by(f64::total_cmp);
    // The chance that at most `few` of the values lie above the median: a binomial tail.
    let (count, mut chance, mut tail) = (values.len(), 0.5_f64.powi(i32::try_from(values.len()).ok()?), 0.0);
    let mut above = None;
    for few in 0..count {
        tail += chance;
        if tail > level {
            break;
        }
        above = Some(few);
        chance *= (count - few) as f64 / (few + 1) as f64;
    }
    values.get(count - 1 - above?).copied()
}
