//! Stalls: the mean beside the median.
//!
//! d of a block is the median of its pairs, so it does not see what happens to few of them: 2 % of steps six times as slow
//! raise the mean by 10 % and the median by nothing. So each case has a second test from the same samples: ln(mean of head /
//! mean of base) of a block, with a limit of its own. Bursts of the machine move a mean too, and hit base as often as head:
//! a block is as symmetric about the change as before, and noisier, so the limit is wider.

use super::series::means;
use infergate_core::stats::mean;
use infergate_receipts::{BlockCase, MeanTest};

/// The ratio of means from which on a slowdown fails, where block means are quiet and elsewhere.
const QUIET_THRESHOLD: f64 = 1.05;
const NOISY_THRESHOLD: f64 = 1.10;

/// Blocks whose means vary more than this get the wider one. Below it a case whose means are unchanged passes after 6 to 9
/// blocks at 5 %, about as many as its median takes.
const QUIET_STD: f64 = 0.03;

/// The limit of means is at least so many times that of the median (as logarithms), so that a slowdown of all steps alike that
/// the median lets pass is not called a stall.
const TIMES_THE_MEDIANS: f64 = 2.0;

/// What the median and the mean of a case count in the suite. Equal ones would make a single slow case of five need 11 blocks
/// in place of 10; with these it needs 10 as before, and a mean 13.
pub(super) const MEDIAN_WEIGHT: f64 = 5.0;
pub(super) const MEAN_WEIGHT: f64 = 1.0;

/// The test of a case's means: `asked`, or by the `threshold` of its median and by what its block means are expected to vary by.
pub fn mean_test(asked: Option<f64>, threshold: f64, expected_std: Option<f64>) -> MeanTest {
    let quiet = expected_std.is_some_and(|std| std <= QUIET_STD);
    let usual = if quiet { QUIET_THRESHOLD } else { NOISY_THRESHOLD };
    MeanTest { threshold: asked.unwrap_or_else(|| at_least(usual, threshold)), expected_std }
}

/// `usual`, or more where the median's limit asks for it.
pub(super) fn at_least(usual: f64, threshold: f64) -> f64 {
    usual.max((TIMES_THE_MEDIANS * threshold.ln()).exp())
}

/// ln(mean of head / mean of base) of one block, averaged over its pairs of processes. `None` if a time is missing, 0 or not finite.
pub fn block_mean_difference(block: &BlockCase) -> Option<f64> {
    mean(&means(block)?)
}
