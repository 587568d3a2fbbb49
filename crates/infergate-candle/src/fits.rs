//! Whether a model fits the memory there is, asked before it is loaded: afterwards the system ends the process without a word.

use anyhow::{Result, ensure};
use sysinfo::System;

/// Refuses weights of `needed_bytes` that would not fit now. Where the system does not say what is free, nothing is refused.
///
/// # Errors
/// Saying what is needed and what there is.
pub fn ensure_fits_memory(model: &str, needed_bytes: u64) -> Result<()> {
    let Some(free_bytes) = free_bytes() else { return Ok(()) };
    ensure!(
        needed_bytes <= free_bytes,
        "{model}: its weights take {:.1} GiB and {:.1} GiB of memory are free; close programs, or choose a smaller model or dtype",
        gib(needed_bytes),
        gib(free_bytes)
    );
    Ok(())
}

/// What can be had without swapping; in a container no more than its limit, of which nobody can say how much is only cache.
fn free_bytes() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    let all = Some(system.available_memory()).filter(|bytes| *bytes > 0)?;
    Some(system.cgroup_limits().map_or(all, |limits| all.min(limits.total_memory)))
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
