//! Statistics over raw samples that measuring and the leak rule need. Pure: no IO, no clock.
//!
//! Every function refuses what it cannot answer with `None`: too few values, a NaN or an infinity among them, a mean of
//! zero under a ratio. `None` is never replaced by a number further up.

mod describe;
mod percentile;
mod trend;
mod unkept;

pub use describe::{
    MAD_TO_STD, coefficient_of_variation, log_ratio, mean, median, median_absolute_deviation,
    robust_coefficient_of_variation, robust_std, sample_std,
};
pub use percentile::{Percentile, percentile, quantile, samples_needed};
pub use trend::{Line, lag_1_autocorrelation, mann_kendall_p_rising, theil_sen};

/// `values` in ascending order, or `None` when there are none or one is not finite.
fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = finite(values)?.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// `values`, unless there are none or one is not finite.
pub fn finite(values: &[f64]) -> Option<&[f64]> {
    (!values.is_empty() && values.iter().all(|value| value.is_finite())).then_some(values)
}
