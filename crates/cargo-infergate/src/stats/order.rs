//! Where a median lies, from order statistics alone: whatever the distribution is.

use infergate::stats::finite;

use super::beta::beta_cdf;

/// The part of an interval's misses at each end.
const TAIL: f64 = 0.025;

/// The two-sided 95 % interval of the median with equal tails: the k-th smallest and the k-th largest value, for the largest k
/// with P(B < k) <= 0.025, where B is binomial with n trials of 1/2. `None` below 6 values, or where one is not finite.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = finite(values)?.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as u64;
    // P(B < k) of a binomial distribution is a tail of a beta distribution.
    let fewer_than = |k: u64| beta_cdf(0.5, (count - k + 1) as f64, k as f64);
    // It holds for k = 0, and not for the middle.
    let (mut holds, mut fails) = (0, count / 2 + 1);
    while fails - holds > 1 {
        let k = holds + (fails - holds) / 2;
        if fewer_than(k)? <= TAIL { holds = k } else { fails = k }
    }
    let k = usize::try_from(holds).ok()?;
    let low = sorted.get(k.checked_sub(1)?)?;
    let high = sorted.get(sorted.len().checked_sub(k)?)?;
    Some((*low, *high))
}
