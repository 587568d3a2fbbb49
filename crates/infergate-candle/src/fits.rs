//! Whether a model fits the memory there is, asked before it is loaded: afterwards the system ends the process without a word.

use anyhow::{Result, ensure};
use sysinfo::System;

/// Caches and buffers are counted for a sequence of so many tokens, the cases measured by default among them. A longer one
/// may need more than was counted; counting the whole context would refuse models that run.
pub const COUNTED_TOKENS: usize = 1024;

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
