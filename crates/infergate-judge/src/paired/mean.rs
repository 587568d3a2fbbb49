//! Stalls: a test of the mean, in addition to the median.
//!
//! d of a block is a median, so it does not show what happens to a few samples: 2 % of steps six times as slow raise the mean by
//! 10 % and the median by nothing. So each case has a second test from the same samples: ln(mean of head / mean of base) of a
//! block, with a limit of its own. Bursts of the machine move a mean, too, and hit base as often as head: a block stays symmetric
//! about the change, and is noisier, so the limit is wider.

use super::series::means;
use infergate_core::stats::mean;
use infergate_receipts::{BlockCase, MeanTest};

/// The ratio of means from which on a slowdown fails: for quiet block means, and for others.
const QUIET_THRESHOLD: f64 = 1.05;
const NOISY_THRESHOLD: f64 = 1.10;

/// The deviation of block means (ln) up to which they are quiet. Below it a case whose means are unchanged passes after 6 to 9
/// blocks at 5 %, about as many as its median takes.
const QUIET_STD: f64 = 0.03;

/// The least ratio of a mean's limit to the median's (logarithms), so that a slowdown of all steps that passes by its median does
/// not fail as a stall.
const TIMES_THE_MEDIANS: f64 = 2.0;

/// The weights of a case's median and mean in the suite. With equal weights a single slow case of five would need 11 blocks; with
/// these it needs 10, as without means, and a mean needs 13.
pub(super) const MEDIAN_WEIGHT: f64 = 5.0;
pub(super) const MEAN_WEIGHT: f64 = 1.0;

/// The test of a case's means. Its limit is `set`, or follows from the `threshold` of the median and the expected deviation of
/// block means.
pub fn mean_test(set: Option<f64>, threshold: f64, expected_std: Option<f64>) -> MeanTest {
    let quiet = expected_std.is_some_and(|std| std <= QUIET_STD);
    let usual = if quiet { QUIET_THRESHOLD } else { NOISY_THRESHOLD };
    MeanTest { threshold: set.unwrap_or_else(|| at_least(usual, threshold)), expected_std }
}

/// `usual`, or more if the median's limit is wide.
pub(super) fn at_least(usual: f64, threshold: f64) -> f64 {
    usual.max((TIMES_THE_MEDIANS * threshold.ln()).exp())
}

/// ln(mean of head / mean of base) of one block, averaged over its pairs of processes. `None` if a time is missing, 0 or not finite.
pub fn block_mean_difference(block: &BlockCase) -> Option<f64> {
    mean(&means(block)?)
}
