//! What simulations draw, and the spread within groups.

use super::finite;

/// A standard normal number (Box and Muller 1958).
pub fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

/// The standard deviation within groups: squared deviations from each group's own mean, a group of n values counting for
/// n - 1. `None` without two values in some group, or when one is not finite.
pub fn pooled_std(groups: &[Vec<f64>]) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0);
    for group in groups {
        let group = finite(group)?;
        let mean = super::mean(group)?;
        squares += group.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += group.len() - 1;
    }
    let std = (squares / freedom as f64).sqrt();
    (freedom > 0 && std.is_finite()).then_some(std)
}
