//! The probes of the hardware ([`infergate_probes`]) as a process of this command.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use infergate_core::process::Group;
use infergate_core::worker::{ending, ensure_not};
use infergate_receipts::Probes;

pub use infergate_probes::run;

/// The hidden command that prints what [`run`] gives, as JSON; its one argument is the number of threads.
pub const COMMAND: &str = "probe-hardware";

/// They take seconds.
const LIMIT: Duration = Duration::from_secs(5 * 60);
const LOOK: Duration = Duration::from_millis(50);

/// As [`run`], by `program` (this command itself) as a process of its own, so that the probes' buffers are not in the way of
/// whatever is measured. It is ended once `cancelled` is set.
pub fn in_process(program: &Path, threads: usize, cancelled: &AtomicBool) -> Result<Probes> {
    let place = program.display();
    let mut command = Command::new(program);
    command.args([COMMAND, &threads.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let process = Group::spawn(&mut command);
    let mut process = process.with_context(|| format!("{place}: cannot be started to probe the hardware"))?;
    let begun = Instant::now();
    while !process.has_ended() {
        ensure_not(cancelled)?;
        let limit_s = LIMIT.as_secs();
        ensure!(begun.elapsed() < LIMIT, "{place}: probing the hardware took longer than {limit_s} s and was ended");
        thread::sleep(LOOK);
    }
    // A pipe holds all of it.
    let mut said = String::new();
    if let (_, Some(mut output), _) = process.take_pipes() {
        output.read_to_string(&mut said).with_context(|| format!("{place}: its probes cannot be read"))?;
    }
    let status = process.end().with_context(|| format!("{place}: cannot be waited for"))?;
    ensure!(status.success(), "{place}: probing the hardware failed ({})", ending(status));
    serde_json::from_str(&said).with_context(|| format!("{place}: it does not print probes"))
}
