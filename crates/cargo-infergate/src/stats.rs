//! The statistics of verdicts. Pure: no IO, no clock.
//!
//! As in [`infergate_core::stats`], which is here too, every function refuses what it cannot answer with `None`.

mod beta;
mod dependent;
mod holm;
mod proportion;
mod signed_rank;
mod simulate;
mod student;

pub use beta::{beta_cdf, beta_quantile};
pub use dependent::{Queue, Timed, batches, is_more_frequent, neighbours, percentile_interval, share_interval};
pub use holm::holm_adjusted;
pub use infergate_core::stats::*;
pub use proportion::clopper_pearson;
pub use signed_rank::{
    MAX_SIGNED_RANKS, hodges_lehmann, signed_rank_lower_bound, signed_rank_p_above, signed_rank_p_below,
    signed_rank_upper_bound, walsh_averages,
};
pub use simulate::{normal, pooled_std};
pub use student::{student_t_cdf, student_t_quantile, student_t_upper_tail};
