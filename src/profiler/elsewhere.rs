//! In place of [`super::timers`] on other systems than Linux for x86-64 and aarch64.

use std::path::Path;

use anyhow::{Result, bail};
use infergate_core::worker::Profile;

/// Does `work`, which gives what [`Profile::samples_ns`] holds, and writes to `file` where threads were meanwhile.
///
/// # Errors
/// Always: it is not known how on this system.
pub fn profile(_: &Path, _: &mut dyn FnMut() -> Result<Vec<Vec<u64>>>) -> Result<Profile> {
    bail!("worker: threads are looked at on Linux for x86-64 and aarch64 alone")
}
