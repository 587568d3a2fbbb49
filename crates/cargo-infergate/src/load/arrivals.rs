//! The schedule of an open loop: when each request is to start, drawn before the run. Pure.

use infergate::load::Spacing;

/// Starts of an open loop, nanoseconds after its begin, without end.
#[derive(Debug)]
pub struct Starts {
    mean_gap_ns: f64,
    spacing: Spacing,
    random: fastrand::Rng,
    next_ns: f64,
}

impl Starts {
    /// `requests_per_s` starts a second, in the mean. The same seed gives the same schedule.
    pub fn new(requests_per_s: f64, spacing: Spacing, seed: u64) -> Self {
        Self { mean_gap_ns: 1e9 / requests_per_s, spacing, random: fastrand::Rng::with_seed(seed), next_ns: 0.0 }
    }
}

impl Iterator for Starts {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let start_ns = self.next_ns as u64;
        let gap = match self.spacing {
            Spacing::Constant => 1.0,
            Spacing::Poisson => exponential(&mut self.random),
            Spacing::Gamma { shape } => gamma(&mut self.random, shape) / shape,
        };
        self.next_ns += gap * self.mean_gap_ns;
        Some(start_ns)
    }
}

/// From (0, 1]: its logarithm is finite.
fn unit(random: &mut fastrand::Rng) -> f64 {
    1.0 - random.f64()
}

/// Mean 1.
fn exponential(random: &mut fastrand::Rng) -> f64 {
    -unit(random).ln()
}

/// Standard normal, by Box and Muller (1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * unit(random).ln()).sqrt() * (std::f64::consts::TAU * unit(random)).cos()
}

/// Gamma of this shape and scale 1, mean `shape`, by Marsaglia and Tsang, "A simple method for generating gamma variables"
/// (2000); below shape 1 by the power of a uniform one that they give.
fn gamma(random: &mut fastrand::Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        return gamma(random, shape + 1.0) * unit(random).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && unit(random).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}
