//! Student's t distribution.

use super::beta::{beta_cdf, beta_quantile};
use super::{mean, sample_std};

/// P(T <= t) for `freedom` degrees of freedom. `None` when `t` is NaN, or for a `freedom` below 10^-5 or above 10^8.
pub fn student_t_cdf(t: f64, freedom: f64) -> Option<f64> {
    if t.is_nan() {
        return None;
    }
    // T^2 / (freedom + T^2) has a beta distribution, and so has what it lacks to 1. The smaller of the two is taken, because
    // numbers are dense near 0. Written so that no square overflows.
    let share = t / freedom * t;
    let beyond = if share < 1.0 {
        0.5 - beta_cdf(share / (1.0 + share), 0.5, freedom / 2.0)? / 2.0
    } else {
        beta_cdf(1.0 / (1.0 + share), freedom / 2.0, 0.5)? / 2.0
    };
    Some(if t < 0.0 { beyond } else { 1.0 - beyond })
}

/// Student's interval around the mean of `values`, of which each end leaves the true mean out with a chance of `tail`. `None` below two
/// values.
pub fn student_interval(values: &[f64], tail: f64) -> Option<(f64, f64)> {
    let (centre, count) = (mean(values)?, values.len() as f64);
    let reach = student_t_quantile(1.0 - tail, count - 1.0)? * sample_std(values)? / count.sqrt();
    Some((centre - reach, centre + reach))
}

/// P(T > t) for `freedom` degrees of freedom, accurate in the far tail. `None` as for [`student_t_cdf`].
pub fn student_t_upper_tail(t: f64, freedom: f64) -> Option<f64> {
    student_t_cdf(-t, freedom)
}

/// The t with P(T <= t) = `p` for `freedom` degrees of freedom. `None` when `p` is not strictly between 0 and 1, or for a
/// `freedom` below 10^-5 or above 10^8.
pub fn student_t_quantile(p: f64, freedom: f64) -> Option<f64> {
    if p == 0.5 {
        return student_t_cdf(0.0, freedom).map(|_| 0.0);
    }
    // From the side of the distribution whose end is near zero, where numbers are dense.
    let tail = 2.0 * p.min(1.0 - p);
    let t_squared = if tail < 0.5 {
        let x = beta_quantile(tail, freedom / 2.0, 0.5)?;
        freedom * (1.0 - x) / x
    } else {
        let x = beta_quantile(1.0 - tail, 0.5, freedom / 2.0)?;
        freedom * x / (1.0 - x)
    };
    Some(if p < 0.5 { -t_squared.sqrt() } else { t_squared.sqrt() })
}
