//! The probes of the hardware ([`infergate_probes`]) as a process of this command.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};

use infergate_build::progress::until_ended;
use infergate_core::process::Group;
use infergate_core::worker::{ending, ensure_not};
use infergate_receipts::Probes;

pub use infergate_probes::run;

/// The hidden command that prints what [`run`] gives, as JSON; its one argument is the number of threads.
pub const COMMAND: &str = "probe-hardware";

/// As [`run`], by `program` (this command itself) as a process of its own, so that the probes' buffers are not in the way of
/// whatever is measured. It is ended once `cancelled` is set.
pub fn in_process(program: &Path, threads: usize, cancelled: &AtomicBool) -> Result<Probes> {
    let place = program.display();
    let mut command = Command::new(program);
    command.args([COMMAND, &threads.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process =
        Group::spawn(&mut command).with_context(|| format!("{place}: cannot be started to probe the hardware"))?;
    let (_, printed, _) = process.take_pipes();
    let status = until_ended(&mut process, || cancelled.load(Ordering::Relaxed))
        .with_context(|| format!("{place}: cannot be waited for"))?;
    ensure_not(cancelled)?;
    ensure!(status.success(), "{place}: probing the hardware failed ({})", ending(status));
    // A pipe holds all of it.
    let printed = printed.with_context(|| format!("{place}: has no output"))?;
    serde_json::from_reader(printed).with_context(|| format!("{place}: it does not print probes"))
}
