//! Evidence that grows block by block and may be looked at after each of them.
//!
//! A bet against "the location is no higher than s" starts with a wealth of 1. Each block multiplies it by
//! 1 + 0.9 tanh(a (d - s)). If d is symmetric, given the blocks before, about a point at or below s, no factor is above 1 in
//! expectation: tanh is odd and rises, so its values at two points that mirror each other about that point never add up to more
//! than zero. Then the wealth ever reaches w with a probability of at most 1 / w, however many looks there are (Ville 1939).
//!
//! This holds for any a that was fixed before its own block. With a = limit / std^2 the wealth grows fastest if the change is as
//! large as the limit and blocks are normal (1 + tanh is then the likelihood ratio against the mirror image). The std starts as
//! the expected one and moves towards that of the blocks so far: a pilot in a noisy second expects far too much, which then costs
//! a few blocks and not the verdict.

use infergate_core::stats::{finite, robust_std};
use infergate_receipts::Interval;

/// The chance that a suite of unchanged cases shows any of them slower, over all looks together.
pub const SUITE_LEVEL: f64 = 0.01;

/// The chance that a case exactly at its limit passes as within it, over all looks together. Each end of an interval has this
/// level, too.
pub const PASS_LEVEL: f64 = 0.025;

/// The fraction of the wealth that a block can win or lose. Below 1, so that one wild block does not end the bet.
const STAKE: f64 = 0.9;

/// The standard deviation of a block (ln) if nothing is known before the first one.
const USUAL_STD: f64 = 0.01;

/// Halvings of the range that holds an interval's end: to a trillionth of its width.
const HALVINGS: usize = 40;

/// The number of blocks from which on their own standard deviation is used.
const BLOCKS_FOR_STD: usize = 3;

/// The weight of the expected deviation, in blocks.
const EXPECTED_BLOCKS: f64 = 3.0;

/// How a block's difference moves the wealth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bet {
    limit: f64,
    expected_std: f64,
    most_scale: f64,
}

impl Bet {
    /// For changes about as large as `limit`, on blocks that are expected to vary by `expected_std`. A negative or infinite
    /// deviation counts as unknown.
    pub fn new(limit: f64, expected_std: Option<f64>) -> Self {
        let std = expected_std.filter(|std| std.is_finite() && *std >= 0.0).unwrap_or(USUAL_STD);
        // Without any noise the scale would be infinite.
        Self { limit, expected_std: std.max(limit / 10.0), most_scale: f64::MAX }
    }

    /// The same with an a of at most 1 / limit, for changes that hit some blocks hard and others not at all. Quiet blocks in
    /// between then cost little of what the others won.
    #[must_use]
    pub fn with_capped_scale(self) -> Self {
        Self { most_scale: 1.0 / self.limit, ..self }
    }

    /// The a of the block after `before`. Its deviation is the geometric mean of the expected one, with the weight of 3 blocks,
    /// and that of `before` (1.4826 MAD, which one wild block does not move), with the weight of its blocks.
    pub fn scale(self, before: &[f64]) -> f64 {
        self.scale_by(robust_std(before), before.len())
    }

    /// The same, if the `blocks` blocks before varied by `seen`.
    pub fn scale_by(self, seen: Option<f64>, blocks: usize) -> f64 {
        let std = seen.filter(|_| blocks >= BLOCKS_FOR_STD).map_or(self.expected_std, |seen| {
            let (seen, blocks) = (seen.max(self.limit / 10.0), blocks as f64);
            ((EXPECTED_BLOCKS * self.expected_std.ln() + blocks * seen.ln()) / (EXPECTED_BLOCKS + blocks)).exp()
        });
        (self.limit / std.powi(2)).min(self.most_scale)
    }

    /// The factor of the wealth for a block that lies `above` the value that the bet is against. A difference that is not finite
    /// ends the bet: it shows nothing from then on.
    pub fn factor(scale: f64, above: f64) -> f64 {
        if above.is_finite() { 1.0 + STAKE * (scale * above).tanh() } else { 0.0 }
    }

    /// The lower end of the values that the blocks do not exclude: against any value below it they give at least `evidence`.
    /// `None` without blocks, if one is not finite, or if so few blocks cannot give that evidence.
    ///
    /// It rests on all blocks alike. An earlier look may have excluded more values, but its end would not fit an estimate from
    /// all blocks.
    pub fn lower_bound(self, differences: &[f64], evidence: f64) -> Option<f64> {
        let differences = finite(differences)?;
        if differences.len() < fewest_blocks(evidence) {
            return None;
        }
        let scales: Vec<f64> = (0..differences.len()).map(|at| self.scale(&differences[..at])).collect();
        let reached = |shift: f64| {
            let factors = differences.iter().zip(&scales).map(|(d, scale)| Self::factor(*scale, d - shift));
            factors.product::<f64>() >= evidence
        };
        let (smallest, largest) =
            differences.iter().fold((f64::MAX, f64::MIN), |(low, high), d| (low.min(*d), high.max(*d)));
        // This far below all of them each factor is the largest possible; above all of them none is above 1.
        let least_scale = scales.iter().copied().fold(f64::MAX, f64::min);
        let (mut low, mut high) = (smallest - 20.0 / least_scale, largest);
        for _ in 0..HALVINGS {
            let middle = low.midpoint(high);
            if reached(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// The upper end, likewise.
    pub fn upper_bound(self, differences: &[f64], evidence: f64) -> Option<f64> {
        let mirrored: Vec<f64> = differences.iter().map(|d| -d).collect();
        self.lower_bound(&mirrored, evidence).map(|bound| -bound)
    }
}

/// The interval of a ratio, from the logarithms of its ends, each a bound at [`PASS_LEVEL`].
pub fn interval((low, high): (f64, f64)) -> Option<Interval> {
    Interval::of_logs(low, high, 1.0 - 2.0 * PASS_LEVEL)
}

/// The fewest blocks that can give a wealth of `evidence`: each wins at most the whole stake.
pub fn fewest_blocks(evidence: f64) -> usize {
    (evidence.ln() / (1.0 + STAKE).ln()).ceil().max(0.0) as usize
}

/// Adjusted e-values by closed testing with weighted means; weights must be fixed in advance. A test gets the smallest weighted
/// mean over all groups of tests that hold it. A group without a change has a mean that reaches w with a probability of at most
/// 1 / w, so reporting every test with at least w errs in at most 1 / w of suites (Vovk and Wang 2021).
pub fn adjusted_evidence(evidence: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<usize> = (0..evidence.len()).collect();
    ascending.sort_by(|a, b| evidence[*a].total_cmp(&evidence[*b]));
    // For each number of smallest values: their weighted sum and their weight.
    let mut smallest = vec![(0.0, 0.0)];
    let (mut sum, mut weight) = (0.0, 0.0);
    for &at in &ascending {
        sum += weights[at] * evidence[at];
        weight += weights[at];
        smallest.push((sum, weight));
    }
    let mut adjusted = vec![0.0; evidence.len()];
    for (rank, &at) in ascending.iter().enumerate() {
        let mean = |others: usize| {
            let (sum, weight) = smallest[others];
            (sum + weights[at] * evidence[at]) / (weight + weights[at])
        };
        // Every evidence below the mean lowers it. They are in ascending order: after the first that is not below it, none is.
        let (mut low, mut high) = (0, rank);
        while low < high {
            let middle = usize::midpoint(low, high);
            if evidence[ascending[middle]] < mean(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        adjusted[at] = mean(low);
    }
    adjusted
}
