//! One test while the looks are replayed: of a case's median, or of its mean.

use super::evidence::Bet;
use super::looks::{LEVEL, MAX_BLOCKS, PASS_LEVEL, Series, Standing};
use crate::receipt::{Outcome, Shown};
use infergate_core::stats::{hodges_lehmann, robust_std, sample_std};

/// What is known of it so far.
#[derive(Debug)]
pub struct Test {
    /// The bets against "no slower" and "no faster".
    change: Bet,
    /// The bet against "at or above the limit".
    limit: Bet,
    /// What it counts in the suite.
    pub weight: f64,
    /// Wealth of the bets against "no slower", "no faster" and "at or above the limit".
    pub above: f64,
    pub below: f64,
    under_limit: f64,
    slower: bool,
    faster: bool,
    within: bool,
    /// The most that the evidence of "slower" and of "faster" was worth in the suite.
    most_slower: f64,
    most_faster: f64,
    /// How it ended, and after how many blocks. From then on it takes none.
    pub settled: Option<(Outcome, usize)>,
}

impl Test {
    pub fn new(change: Bet, limit: Bet, weight: f64) -> Self {
        Self {
            change,
            limit,
            weight,
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

    /// The last of `blocks` blocks.
    pub fn take(&mut self, series: &Series, blocks: usize) {
        let Some(&difference) = series.differences.get(blocks - 1) else { return };
        let before = &series.differences[..blocks - 1];
        let known = series.limit_after(blocks - 1);
        let spread = robust_std(before);
        let change = self.change.about(known).scale_by(spread, before.len());
        self.above *= Bet::factor(change, difference);
        self.below *= Bet::factor(change, -difference);
        let limit = series.limit_after(blocks);
        let against = |at: usize| {
            let bet = self.limit.about(series.limit_after(at));
            Bet::factor(bet.scale(&series.differences[..at]), limit - series.differences[at])
        };
        self.under_limit = if limit == known {
            let scale = self.limit.about(limit).scale_by(spread, before.len());
            self.under_limit * Bet::factor(scale, limit - difference)
        } else {
            (0..blocks).map(against).product()
        };
        self.within = (self.within && limit == known) || self.under_limit >= 1.0 / PASS_LEVEL;
    }

    /// What its evidence of "slower" and of "faster" is worth in the suite at this look.
    pub fn note(&mut self, (above, below): (f64, f64)) {
        if self.settled.is_none() {
            self.most_slower = self.most_slower.max(above);
            self.most_faster = self.most_faster.max(below);
            self.slower |= above >= 1.0 / LEVEL;
            self.faster |= below >= 1.0 / LEVEL;
        }
    }

    /// The look at a case's median after `blocks` blocks.
    pub fn settle(&mut self, series: &Series, blocks: usize) {
        if self.settled.is_some() {
            return;
        }
        let limit = series.limit_after(blocks);
        let outcome = match self.estimate(series, blocks) {
            Some(theta) if self.regressed(theta, limit) => Outcome::Regressed,
            Some(theta) if self.faster && theta <= -limit => Outcome::Improved,
            // It looks improved, and more blocks may say so.
            Some(theta) if self.within && (theta > -limit || blocks == MAX_BLOCKS) => Outcome::WithinLimit,
            _ => return,
        };
        self.settled = Some((outcome, blocks));
    }

    /// How a median ends that the last block did not settle.
    pub fn end(&mut self, series: &Series) {
        let limit = series.limit_after(MAX_BLOCKS);
        if self.settled.is_none() {
            let outcome = match self.interval(series, MAX_BLOCKS) {
                Some((low, high)) if (high - low) / 2.0 <= limit => Outcome::Inconclusive,
                _ => Outcome::Unstable,
            };
            self.settled = Some((outcome, MAX_BLOCKS));
        }
    }

    /// The look at a case's mean. It ends with a median that regressed, since the case has failed. It waits for no improvement,
    /// which the median is there to show.
    pub fn settle_mean(&mut self, series: &Series, blocks: usize, median_regressed: bool) {
        if self.settled.is_some() {
            return;
        }
        let limit = series.limit_after(blocks);
        let outcome = match self.estimate(series, blocks) {
            Some(theta) if self.regressed(theta, limit) => Outcome::Regressed,
            Some(theta) if self.within && self.faster && theta <= -limit => Outcome::Improved,
            Some(_) if self.within => Outcome::WithinLimit,
            _ if median_regressed => Outcome::Advisory,
            _ => return,
        };
        self.settled = Some((outcome, blocks));
    }

    /// How a mean ends that the last block did not settle. Where that leaves an interval so wide that it says neither "slower" nor "below
    /// the limit", the machine's own bursts are as large as a stall would be: that is shown and decides nothing. An interval above zero
    /// is no such noise, since bursts hit both sides.
    pub fn end_mean(&mut self, series: &Series) {
        let limit = series.limit_after(MAX_BLOCKS);
        if self.settled.is_none() {
            let outcome = match self.interval(series, MAX_BLOCKS) {
                Some((low, high)) if low <= 0.0 && (high - low) / 2.0 > limit => Outcome::Advisory,
                // No number is no noise.
                _ => Outcome::Inconclusive,
            };
            self.settled = Some((outcome, MAX_BLOCKS));
        }
    }

    fn regressed(&self, theta: f64, limit: f64) -> bool {
        self.slower && !self.within && theta >= limit
    }

    /// The estimate, once it is needed: it takes most of the time of a look.
    fn estimate(&self, series: &Series, blocks: usize) -> Option<f64> {
        let shown = self.slower || self.faster || self.within;
        shown.then(|| hodges_lehmann(series.differences.get(..blocks)?)).flatten()
    }

    /// The interval after `blocks` blocks. It rests on all of them; what an earlier look had shown is held to, and so is the
    /// estimate, so that nothing beside it says otherwise.
    fn interval(&self, series: &Series, blocks: usize) -> Option<(f64, f64)> {
        let (seen, evidence) = (series.differences.get(..blocks)?, 1.0 / PASS_LEVEL);
        let limit = series.limit_after(blocks);
        let (change, under) = (self.change.about(limit), self.limit.about(limit));
        let (mut low, mut high) = (change.lower_bound(seen, evidence)?, under.upper_bound(seen, evidence)?);
        if self.slower {
            low = low.max(0.0);
        }
        if self.faster {
            high = high.min(0.0);
        }
        if self.within {
            high = high.min(limit);
        }
        let theta = hodges_lehmann(seen)?;
        Some((low.min(theta), high.max(theta)))
    }

    /// The numbers beside its outcome.
    pub fn standing(&self, series: &Series) -> Standing {
        let all = series.differences.len();
        let blocks = self.settled.map_or(all, |(_, blocks)| blocks).min(all);
        let seen = &series.differences[..blocks];
        let (low, high) = self.interval(series, blocks).unzip();
        let (shown, most) = match (self.slower, self.faster) {
            (true, _) => (Some(Shown::Slower), self.most_slower),
            (false, true) => (Some(Shown::Faster), self.most_faster),
            (false, false) => (None, self.most_slower),
        };
        Standing {
            outcome: self.settled.map(|(outcome, _)| outcome),
            blocks,
            theta: hodges_lehmann(seen),
            low,
            high,
            shown,
            p_adjusted: (blocks > 0).then(|| (1.0 / most).min(1.0)),
            block_std: sample_std(seen),
            mean: None,
        }
    }
}
