//! The work of a case, which the hardware's limit follows from.

use serde::{Deserialize, Serialize};

/// Work of one sample that no implementation can avoid.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Work {
    /// Bytes read from memory while decoding.
    pub bytes: f64,
    /// Floating point operations while reading the prompt.
    pub flops: f64,
    /// All bytes: also the weights, read once, and the cache of the prompt. `null` in older receipts.
    #[serde(default)]
    pub all_bytes: Option<f64>,
    /// All floating point operations: also those of decoded tokens. `null` in older receipts.
    #[serde(default)]
    pub all_flops: Option<f64>,
}

impl Work {
    /// Operations for each byte, which says whether memory or arithmetic is the limit. `None` where it is not known.
    pub fn intensity_flops_per_byte(&self) -> Option<f64> {
        let intensity = self.all_flops? / self.all_bytes?;
        (intensity.is_finite() && intensity > 0.0).then_some(intensity)
    }
}
