//! Random numbers that are the same on every machine and in every later version: a seed is a part of what was measured.

use crate::splitmix;

/// [`splitmix`], and the distributions that a schedule needs.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// One seed for the number `place` of a family of seeds.
    pub fn seed_of(seed: u64, place: u64) -> u64 {
        let mut first = Self::new(seed);
        let family = first.next();
        Self::new(family ^ place.wrapping_mul(0xd134_2543_de82_ef95)).next()
    }

    pub fn next(&mut self) -> u64 {
        splitmix::next(&mut self.state)
    }

    /// Above 0 and below 1, uniform.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Mean 1, exponential.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    /// Mean 0, variance 1 (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Gamma with this shape and scale 1, so that its mean is the shape (Marsaglia and Tsang 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let lift = libm::pow(self.unit(), 1.0 / shape);
            return self.gamma(shape + 1.0) * lift;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
            if v > 0.0 && libm::log(self.unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }
}
