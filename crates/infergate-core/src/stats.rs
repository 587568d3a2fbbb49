//! Statistics over raw samples and of verdicts. Pure: no IO, no clock.
//!
//! Every function refuses what it cannot answer with `None`: too few values, a NaN or an infinity among them, a mean of
//! zero under a ratio. `None` is never replaced by a number further up.

mod beta;
mod dependent;
mod describe;
mod holm;
mod percentile;
mod proportion;
mod signed_rank;
mod simulate;
mod student;
mod trend;
mod unkept;

pub use beta::{beta_cdf, beta_quantile};
pub use dependent::{Queue, Timed, batches, is_more_frequent, neighbours, percentile_interval, share_interval};
pub use describe::{
    MAD_TO_STD, coefficient_of_variation, log_ratio, mean, median, median_absolute_deviation, median_error, robust_std,
    sample_std,
};
pub use holm::holm_adjusted;
pub use percentile::{Percentile, percentile, quantile, samples_needed};
pub use proportion::clopper_pearson;
pub use signed_rank::{
    MAX_SIGNED_RANKS, hodges_lehmann, signed_rank_lower_bound, signed_rank_p_above, signed_rank_upper_bound,
    walsh_averages,
};
pub use simulate::{normal, pooled_std};
pub use student::{student_t_cdf, student_t_quantile, student_t_upper_tail};
pub use trend::{Line, lag_1_autocorrelation, mann_kendall_p_rising, theil_sen};

/// `values`, unless there are none or one is not finite.
pub fn finite(values: &[f64]) -> Option<&[f64]> {
    (!values.is_empty() && values.iter().all(|value| value.is_finite())).then_some(values)
}
