//! Whether a model fits the memory there is, asked before it is loaded: afterwards the system ends the process without a word.

use anyhow::{Result, ensure};
use sysinfo::System;

use crate::config::{Family, LlamaConfig};

/// Caches and buffers are counted for a sequence of so many tokens, the cases measured by default among them. A longer one
/// may need more than was counted; counting the whole context would refuse models that run.
pub const COUNTED_TOKENS: usize = 1024;

/// Positions for which the quantized Qwen3 of candle-transformers keeps its cache, whatever is asked of it.
const QUANTIZED_QWEN3_CACHE_TOKENS: usize = 4096;

/// Bytes of memory that a model takes while it is loaded and run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The weights as they stay in memory.
    pub weights: u64,
    /// Copies that exist only while they are loaded.
    pub loading: u64,
    /// Keys, values, tables, and the buffers that a prompt is computed in.
    pub running: u64,
}

impl Needs {
    /// A model with Llama's layout whose `weights` bytes stay, beside `loading` bytes while they are read. `quantized`: its
    /// weights are computed on as stored.
    pub fn llama(config: &LlamaConfig, weights: u64, loading: u64, quantized: bool) -> Self {
        let c = config;
        let tokens = COUNTED_TOKENS.min(c.context);
        let cached = match c.family {
            Family::Qwen3 if quantized => QUANTIZED_QWEN3_CACHE_TOKENS,
            _ => tokens,
        };
        // Keys and values are copied for every query head that shares them.
        let row = 2 * c.hidden + 3 * c.q_width() + 2 * c.kv_width() + 3 * c.intermediate;
        // Sine, cosine, and the angles they are made of.
        let tables = f32s(&[3, c.context, c.head_dim / 2]);
        // Twice: the state behind the prompt is kept for going back to it.
        let cache = f32s(&[2, 2, c.layers, c.kv_width(), cached]);
        // Scores as products, masked, and as shares.
        let buffers = f32s(&[tokens, row]) + f32s(&[3, c.heads, tokens, tokens]) + f32s(&[2, c.vocab]);
        Self { weights, loading, running: tables + cache + buffers }
    }

    /// The most that is taken at one time.
    pub fn peak(&self) -> u64 {
        self.weights + self.running.max(self.loading)
    }

    /// Refuses a `model` that does not fit the memory that is free now. Where the system does not say, nothing is refused.
    ///
    /// # Errors
    /// Saying what is needed and what there is.
    pub fn ensure_fits_memory(&self, model: &str) -> Result<()> {
        let Some(free) = free_bytes() else { return Ok(()) };
        ensure!(
            self.peak() <= free,
            "{model}: it takes {:.1} GiB of memory, {:.1} of them for its weights, and {:.1} GiB are free; close programs, or choose a smaller model or dtype",
            gib(self.peak()),
            gib(self.weights),
            gib(free)
        );
        Ok(())
    }
}

/// Bytes of an f32 array with these dimensions.
pub(crate) fn f32s(dimensions: &[usize]) -> u64 {
    dimensions.iter().fold(4, |bytes, &n| bytes * n as u64)
}

/// What can be had without swapping; in a container no more than its limit less what its programs hold.
fn free_bytes() -> Option<u64> {
    let mut system = System::new();
    system.refresh_memory();
    let all = Some(system.available_memory()).filter(|bytes| *bytes > 0)?;
    Some(system.cgroup_limits().map_or(all, |limits| all.min(limits.total_memory.saturating_sub(limits.rss))))
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
