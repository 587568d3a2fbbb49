//! How small a slowdown a run can call, given its noise: the rules themselves, simulated on normal blocks.

use super::looks::{MAX_BLOCKS, Series, outcomes};
use crate::receipt::Outcome;
use crate::stats::normal;

/// A slowdown counts as one that a run can show when it is called in this share of runs.
pub const POWER_ASKED: f64 = 0.95;

/// Simulated runs. The share called has a standard error of 1 % where it matters.
const RUNS: usize = 500;

/// No slowdown beyond a doubling is looked for.
const LARGEST: f64 = 2.0;

/// The same draws for every question, so that a larger slowdown never has the smaller share.
const SEED: u64 = 1;

/// Share of runs that call a slowdown of `slowdown` (a ratio) regressed, in a suite of `tests` cases of which the others
/// are unchanged, with blocks that vary by `block_std` (of ln ratios, normal), at most `blocks` of them.
///
/// `None` for a `block_std` that is negative or not finite.
pub fn called_share(slowdown: f64, limit: f64, block_std: f64, blocks: usize, tests: usize) -> Option<f64> {
    if !(block_std.is_finite() && block_std >= 0.0 && slowdown.is_finite() && slowdown > 0.0) {
        return None;
    }
    let noise = noise(blocks);
    let called = noise.iter().filter(|noise| is_called(slowdown.ln(), limit, block_std, noise, tests));
    Some(called.count() as f64 / noise.len() as f64)
}

/// The smallest slowdown, as a ratio, that [`POWER_ASKED`] of runs call. `None` when none up to a doubling is: too few
/// blocks for any fail look, or too much noise.
pub fn smallest_slowdown(limit: f64, block_std: f64, blocks: usize, tests: usize) -> Option<f64> {
    let enough = |ln: f64| called_share(ln.exp(), limit, block_std, blocks, tests).is_some_and(|s| s >= POWER_ASKED);
    let (mut low, mut high) = (0.0, LARGEST.ln());
    if !enough(high) {
        return None;
    }
    // To a twentieth of a percent: finer would be the simulation's own noise.
    while high - low > 0.0005 {
        let middle = f64::midpoint(low, high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high.exp())
}

fn is_called(theta: f64, limit: f64, block_std: f64, noise: &[f64], tests: usize) -> bool {
    let differences = noise.iter().map(|z| theta + block_std * z).collect();
    let expected_std = Some(block_std);
    let mut suite = vec![Series { limit, expected_std, differences }];
    // Unchanged cases pass at the first look that can; what they have by then stays in the suite.
    suite.resize(tests.max(1), Series { limit, expected_std: None, differences: vec![0.0; noise.len()] });
    outcomes(&suite)[0] == Some(Outcome::Regressed)
}

fn noise(blocks: usize) -> Vec<Vec<f64>> {
    let mut random = fastrand::Rng::with_seed(SEED);
    // Whole runs are drawn, so that fewer blocks see the beginning of the same runs.
    let mut run = || (0..MAX_BLOCKS).map(|_| normal(&mut random)).collect::<Vec<f64>>();
    let mut cut = || run()[..blocks.min(MAX_BLOCKS)].to_vec();
    (0..RUNS).map(|_| cut()).collect()
}
