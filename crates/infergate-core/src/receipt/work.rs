//! The work of a case, which the hardware's limit follows from.

use serde::{Deserialize, Serialize};

use super::limits::MAX_RATE;

/// Work of one sample that no implementation can avoid.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Work {
    /// Bytes read from memory while decoding.
    pub bytes: f64,
    /// Floating point operations while reading the prompt.
    pub flops: f64,
    /// All bytes: also the weights, read once, and the cache of the prompt.
    pub all_bytes: Option<f64>,
    /// All floating point operations: also those of decoded tokens.
    pub all_flops: Option<f64>,
}

impl Work {
    /// The first amount that is none: no number, below zero, or beyond anything a machine does.
    pub fn unsound(&self) -> Option<String> {
        let amounts = [
            ("bytes", Some(self.bytes)),
            ("flops", Some(self.flops)),
            ("all_bytes", self.all_bytes),
            ("all_flops", self.all_flops),
        ];
        let (name, amount) = amounts
            .into_iter()
            .find_map(|(name, amount)| Some((name, amount.filter(|it| !(0.0..=MAX_RATE).contains(it))?)))?;
        Some(format!("{name} is {amount}, which is no number from 0 to {MAX_RATE:e}"))
    }

    /// Operations for each byte, which says whether memory or arithmetic is the limit. `None` where it is not known.
    pub fn intensity_flops_per_byte(&self) -> Option<f64> {
        let intensity = self.all_flops? / self.all_bytes?;
        (intensity.is_finite() && intensity > 0.0).then_some(intensity)
    }
}
