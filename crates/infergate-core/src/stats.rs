//! Statistics over raw samples and of verdicts. Pure: no IO, no clock.
//!
//! Every function refuses what it cannot answer with `None`: too few values, a NaN or an infinity among them, a mean of
//! zero under a ratio. `None` is never replaced by a number further up.

mod beta;
mod dependent;
mod describe;
mod frequency;
mod holm;
mod percentile;
mod proportion;
mod student;
mod trend;

pub use beta::*;
pub use dependent::*;
pub use describe::*;
pub use frequency::*;
pub use holm::*;
pub use percentile::*;
pub use proportion::*;
pub use student::*;
pub use trend::*;

/// Whole numbers, such as nanoseconds or bytes, as statistics take them.
pub fn floats(values: &[u64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

/// `values`, unless there are none or one is not finite.
pub fn finite(values: &[f64]) -> Option<&[f64]> {
    (!values.is_empty() && values.iter().all(|value| value.is_finite())).then_some(values)
}
