//! The probes of the hardware ([`infergate_probes`]) as a process of this command.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::receipt::Probes;
use infergate::worker::{WorkerError, interrupted};

pub use infergate_probes::run;

/// The hidden command that prints what [`run`] gives, as JSON; its one argument is the number of threads.
pub const COMMAND: &str = "probe-hardware";

/// As [`run`], by `program` (this command itself) as a process of its own, so that the probes' buffers are not in the way of
/// whatever is measured.
///
/// # Errors
/// When it cannot be started, or fails: its own words are on stderr.
pub fn in_process(program: &Path, threads: usize) -> Result<Probes> {
    let place = program.display();
    let output = Command::new(program).args([COMMAND, &threads.to_string()]).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("{place}: cannot be started to probe the hardware"))?;
    if interrupted(output.status) {
        return Err(WorkerError::by_user().into());
    }
    ensure!(output.status.success(), "{place}: probing the hardware failed ({})", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("{place}: it does not print probes"))
}
