//! Percentiles, and how many samples one needs before it may be printed.

use super::finite;

/// The percentile at `p` (0.9 for p90) of `samples`. `None` when there are too few of them to print it, see [`samples_needed`], when `p`
/// is not strictly between 0 and 1, or when a sample is not finite.
pub fn percentile(samples: &[f64], p: f64) -> Option<f64> {
    if samples.len() < samples_needed(p)? {
        return None;
    }
    quantile(samples, p)
}

/// Linear interpolation between order statistics (type 7 of Hyndman and Fan 1996, NumPy's default), from however many
/// values there are. `None` without values, when one is not finite, or for `p` outside 0..=1.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    quantile_in(&mut values.to_vec(), p)
}

/// The same of values whose order nobody needs any more: of millions there is no room for a copy.
pub(super) fn quantile_in(values: &mut [f64], p: f64) -> Option<f64> {
    finite(values)?;
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let position = p * (values.len() - 1) as f64;
    let weight = position.fract();
    // A verdict takes some hundred thousand medians: they are not worth sorting for.
    let (_, below, larger) = values.select_nth_unstable_by(position.floor() as usize, f64::total_cmp);
    let below = *below;
    let above = if weight > 0.0 { larger.iter().copied().min_by(f64::total_cmp)? } else { below };
    // Not `below + weight * (above - below)`: the difference of extreme values would overflow.
    Some(if below == above { below } else { below * (1.0 - weight) + above * weight })
}

/// The fewest samples for which a two-sided 95 % order-statistic interval (equal tails) of the percentile at `p` exists:
/// n >= ln 0.025 / ln max(p, 1 - p). 6 for p50, 36 for p90, 368 for p99. `None` when `p` is not strictly between 0 and 1.
pub fn samples_needed(p: f64) -> Option<usize> {
    (p > 0.0 && p < 1.0).then(|| (0.025_f64.ln() / p.max(1.0 - p).ln()).ceil() as usize)
}
