//! Location and spread, and what simulations draw.

use super::percentile::quantile_in;
use super::{finite, quantile};

/// Makes the median absolute deviation of a normal sample an estimate of its standard deviation: 1 / Phi^-1(3/4).
pub const MAD_TO_STD: f64 = 1.4826;
/// sqrt(pi / 2): the standard error of a median of many normal values by that of their mean.
const MEDIAN_TO_MEAN_ERROR: f64 = 1.253_314;

/// The arithmetic mean. `None` without values, or when one is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    let values = finite(values)?;
    // Around the first value, so that large values neither overflow nor lose their small differences.
    let origin = values[0];
    let mean = origin + values.iter().map(|value| (value - origin) / values.len() as f64).sum::<f64>();
    mean.is_finite().then_some(mean)
}

/// The middle value, or the mean of the two middle ones. `None` without values, or when one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The location estimate of Hodges and Lehmann (1963): the median of the means of all pairs of values, each with itself included. A wild
/// value moves it little. `None` without values, or when one is not finite.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    let pairs = values.iter().enumerate().flat_map(|(at, a)| values[at..].iter().map(move |b| a.midpoint(*b)));
    quantile_in(&mut pairs.collect::<Vec<f64>>(), 0.5)
}

/// The sample variance (n - 1). `None` below two values, or when one is not finite.
pub fn sample_variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64).filter(|variance| variance.is_finite())
}

/// Its root, the sample standard deviation. `None` as there.
pub fn sample_std(values: &[f64]) -> Option<f64> {
    sample_variance(values).map(f64::sqrt)
}

/// The standard deviation within groups: squared deviations from each group's own mean, a group of n values counting for
/// n - 1. `None` without two values in some group, or when one is not finite.
pub fn pooled_std(groups: &[Vec<f64>]) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0);
    for group in groups {
        let mean = mean(group)?;
        squares += group.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += group.len() - 1;
    }
    let std = (squares / freedom as f64).sqrt();
    (freedom > 0 && std.is_finite()).then_some(std)
}

/// CV: sample standard deviation / mean. `None` below two values, when one is not finite, or for a mean that is not
/// above zero.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    Some(sample_std(values)? / mean).filter(|ratio| mean > 0.0 && ratio.is_finite())
}

/// The standard deviation of normal values by their MAD, which a wild one does not move. `None` without values, or when one is
/// not finite.
pub fn robust_std(values: &[f64]) -> Option<f64> {
    Some(MAD_TO_STD * median_absolute_deviation(values)?)
}

/// The standard error of a median of `count` normal values that deviate by `std`: 1.2533 std / sqrt(count).
pub fn median_error(std: f64, count: usize) -> f64 {
    MEDIAN_TO_MEAN_ERROR * std / (count as f64).sqrt()
}

/// MAD: the median absolute deviation from the median. `None` without values, or when one is not finite.
pub fn median_absolute_deviation(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&deviations)
}

/// `ln(head / base)`, in which a slowdown and a speed-up by the same factor differ only in sign. `None` unless both are
/// finite and above zero.
pub fn log_ratio(base: f64, head: f64) -> Option<f64> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    // A difference of logarithms: the quotient of extreme values would overflow.
    (positive(base) && positive(head)).then(|| head.ln() - base.ln())
}

/// A standard normal number (Box and Muller 1958).
pub fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}
