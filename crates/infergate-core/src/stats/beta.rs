//! The incomplete beta function and its inverse. Both end for every argument, which a search with Newton's steps does not.

use std::f64::consts::PI;
use std::ops::RangeInclusive;

/// Parameters, and their sum: [`fraction`] takes some times the root of the larger one in steps.
const PARAMETERS: RangeInclusive<f64> = 1e-6..=1e8;
/// The last bits of a quantile would be those of this machine's logarithms.
const UNSEARCHED_BITS: u32 = 12;
/// From here on Stirling's series is as exact as a number can be.
const STIRLING_FROM: f64 = 16.0;

/// P(X <= x) of a beta distribution with parameters `a` and `b`. `None` for an `x` outside 0 to 1, for a parameter
/// below 10^-6, and for a sum of parameters above 10^8.
pub fn beta_cdf(x: f64, a: f64, b: f64) -> Option<f64> {
    if !((0.0..=1.0).contains(&x) && [a, b, a + b].iter().all(|value| PARAMETERS.contains(value))) {
        return None;
    }
    if x == 0.0 || x == 1.0 {
        return Some(x);
    }
    // The fraction converges fast on this side of the mean; the other side is its mirror image.
    let mirrored = x > (a + 1.0) / (a + b + 2.0);
    let (x, a, b) = if mirrored { (1.0 - x, b, a) } else { (x, a, b) };
    let below = (scaled_density(x, a, b) * fraction(x, a, b) / a).clamp(0.0, 1.0);
    Some(if mirrored { 1.0 - below } else { below })
}

/// The x with P(X <= x) = `p` of a beta distribution, to 12 digits. `None` for a `p` that is not between 0 and 1, and where
/// [`beta_cdf`] has none.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    // The bits of numbers from 0 to 1 are in the order of the numbers: 50 halvings find any of them.
    let number = |bits: u64| f64::from_bits(bits << UNSEARCHED_BITS);
    let (mut below, mut above) = (0, 1.0f64.to_bits() >> UNSEARCHED_BITS);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if beta_cdf(number(middle), a, b)? < p { below = middle } else { above = middle }
    }
    Some(number(above))
}

/// x^a (1 - x)^b / B(a, b), by Loader's form of the binomial density (2000): no difference of large logarithms.
fn scaled_density(x: f64, a: f64, b: f64) -> f64 {
    let sum = a + b;
    let logarithm = stirling_error(sum)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, sum * x)
        - deviance(b, sum * (1.0 - x))
        + 0.5 * (a / sum * b / (2.0 * PI)).ln();
    logarithm.exp()
}

/// ln gamma(z + 1) less Stirling's approximation of it: (z + 1/2) ln z - z + ln(2 pi) / 2.
fn stirling_error(z: f64) -> f64 {
    let (mut z, mut steps) = (z, 0.0);
    while z < STIRLING_FROM {
        // What the error of z has above that of z + 1.
        steps += (z + 0.5) * (1.0 / z).ln_1p() - 1.0;
        z += 1.0;
    }
    let square = z * z;
    let series = 1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square;
    steps + (1.0 / 12.0 - series / square) / z
}

/// value ln(value / mean) + mean - value, by its series where the two are near each other.
fn deviance(value: f64, mean: f64) -> f64 {
    let difference = value - mean;
    if difference.abs() >= 0.1 * (value + mean) {
        return value * (value / mean).ln() - difference;
    }
    let v = difference / (value + mean);
    let mut sum = difference * v;
    let mut power = 2.0 * value * v;
    for odd in (3..).step_by(2).take(50) {
        power *= v * v;
        let next = sum + power / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method. Within a few roots of the larger
/// parameter it stands still, which bounds its steps.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let not_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let steps = 200 + 10 * (a.max(b).sqrt() as u32);
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..=steps {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / not_zero(1.0 + even * d);
        c = not_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / not_zero(1.0 + odd * d);
        c = not_zero(1.0 + odd / c);
        value *= d * c;
        if (d * c - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}
