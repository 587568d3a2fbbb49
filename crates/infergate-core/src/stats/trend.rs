//! Trends over equally spaced observations: is there one, how steep is it, and how much do neighbours resemble each other.

use super::percentile::quantile_in;
use super::{finite, mean};

/// One-sided p value of "the series rises": Mann (1945) and Kendall (1975), variance corrected for ties, normal
/// approximation with continuity correction, which is good from ten observations on.
///
/// A series without any change has p = 1. `None` below three values, or when one is not finite.
pub fn mann_kendall_p_rising(values: &[f64]) -> Option<f64> {
    let values = finite(values)?;
    if values.len() < 3 {
        return None;
    }
    let n = values.len() as f64;
    let mut s = 0.0;
    for (at, value) in values.iter().enumerate() {
        for later in &values[at + 1..] {
            s += later.total_cmp(value) as i32 as f64;
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let tied = sorted.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64);
    let ties: f64 = tied.map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if variance <= 0.0 {
        return Some(1.0);
    }
    let towards_zero = if s > 0.0 {
        s - 1.0
    } else if s < 0.0 {
        s + 1.0
    } else {
        0.0
    };
    // P(Z > z) of the standard normal distribution.
    let z = towards_zero / variance.sqrt();
    Some(0.5 * libm::erfc(z / std::f64::consts::SQRT_2))
}

/// The Theil-Sen slope, from one observation to the next: the median of the slopes of all pairs (Sen 1968). A few wild observations do not
/// move it. `None` below two values, or when one is not finite.
pub fn theil_sen(values: &[f64]) -> Option<f64> {
    let values = finite(values)?;
    // 100 MB of 5,000 observations: once, and no more.
    let mut slopes = Vec::with_capacity(values.len() * (values.len() - 1) / 2);
    for (at, value) in values.iter().enumerate() {
        let later = values[at + 1..].iter().enumerate();
        slopes.extend(later.map(|(gap, later)| (later - value) / (gap + 1) as f64));
    }
    quantile_in(&mut slopes, 0.5)
}

/// The correlation of each value with the one before it. `None` below three values, when one is not finite, or when nothing
/// varies.
pub fn lag_1_autocorrelation(values: &[f64]) -> Option<f64> {
    if values.len() < 3 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (squares > 0.0).then(|| products / squares)
}
