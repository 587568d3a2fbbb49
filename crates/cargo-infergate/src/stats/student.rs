//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// P(T <= t) for `freedom` degrees of freedom. `None` when `t` is NaN or `freedom` is not above zero.
pub fn student_t_cdf(t: f64, freedom: f64) -> Option<f64> {
    (!t.is_nan()).then(|| standard(freedom)).flatten().map(|distribution| distribution.cdf(t))
}

/// P(T > t) for `freedom` degrees of freedom, accurate in the far tail. `None` when `t` is NaN or `freedom` is not above
/// zero.
pub fn student_t_upper_tail(t: f64, freedom: f64) -> Option<f64> {
    student_t_cdf(-t, freedom)
}

/// The t with P(T <= t) = `p` for `freedom` degrees of freedom. `None` when `p` is not strictly between 0 and 1 or
/// `freedom` is not above zero.
pub fn student_t_quantile(p: f64, freedom: f64) -> Option<f64> {
    (p > 0.0 && p < 1.0).then(|| standard(freedom)).flatten().map(|distribution| distribution.inverse_cdf(p))
}

fn standard(freedom: f64) -> Option<StudentsT> {
    if freedom.is_finite() { StudentsT::new(0.0, 1.0, freedom).ok() } else { None }
}
