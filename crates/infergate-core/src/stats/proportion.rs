//! How often something happened, and how often it may happen.

use super::beta::beta_quantile;

/// The exact two-sided interval of a proportion at `confidence` (0.95) after `hits` of `trials` (Clopper and Pearson
/// 1934): the ends are quantiles of beta distributions. `None` without trials and from 10^8 on, for more hits than trials, or
/// for a confidence outside (0, 1).
pub fn clopper_pearson(hits: u64, trials: u64, confidence: f64) -> Option<(f64, f64)> {
    if trials == 0 || hits > trials || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    ends(hits as f64, (trials - hits) as f64, (1.0 - confidence) / 2.0)
}

/// The ends of that interval with the chance `tail` beyond each. The counts need not be whole: trials that depend on each other
/// say as much as a smaller number of others.
pub(super) fn ends(hits: f64, misses: f64, tail: f64) -> Option<(f64, f64)> {
    // The extremes have closed forms, and no beta distribution.
    let low = if hits == 0.0 { 0.0 } else { beta_quantile(tail, hits, misses + 1.0)? };
    let high = if misses == 0.0 { 1.0 } else { beta_quantile(1.0 - tail, hits + 1.0, misses)? };
    Some((low, high))
}
