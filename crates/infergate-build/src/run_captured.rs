//! Runs programs, and reads their output once they have ended. Cargo may wait for another cargo, and rustup for the network: Ctrl-C ends
//! them.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use infergate_core::process::Group;
use infergate_core::relay::Relay;

use super::{output, progress};
use crate::watcher::watched;

/// Lines of stderr kept, plus the last one.
const MOST_LINES: usize = 10_000;

/// Which output of a program is shown as it comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    Nothing,
    /// In its colours.
    Stderr,
    /// Also stdout, which is then given as stderr.
    All,
}

/// [`run`] without any output shown.
///
/// # Errors
/// As [`run`].
pub fn run_captured(command: Command) -> Result<Output> {
    run(command, Echo::Nothing)
}

/// Runs `command` without input and under a watcher. It is ended, with all that it started, once the user ends the run or this process has
/// ended. The returned stderr has no colours. With `--quiet` it is shown only if the program fails.
///
/// # Errors
/// A program that cannot be started; [`WorkerError::Interrupted`](infergate_core::worker::WorkerError::Interrupted) if the user ended it.
pub fn run(command: Command, echo: Echo) -> Result<Output> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The program of a unit test is no watcher.
    let mut command = if cfg!(test) { command } else { watched(command) };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process =
        Group::spawn(&mut command).with_context(|| format!("{name} cannot be started; is it installed?"))?;
    let (_, mut stdout, stderr) = process.take_pipes();
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let relay = |pipe: Box<dyn Read + Send>| {
        let kept = lines.clone();
        Relay::start(pipe, move |line| {
            if echo != Echo::Nothing {
                output::status(line);
            }
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(MOST_LINES);
            kept.push(anstream::adapter::strip_str(line).to_string());
        })
    };
    let mut relays: Vec<Relay> = stderr.into_iter().map(|pipe| relay(Box::new(pipe))).collect();
    if echo == Echo::All {
        relays.extend(stdout.take().map(|pipe| relay(Box::new(pipe))));
    }
    let stdout = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
    });
    let status = progress::until_ended(&mut process, progress::is_cancelled);
    progress::ensure_not_cancelled()?;
    let status = status.with_context(|| format!("{name} cannot be waited for"))?;
    let stdout = stdout.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let stdout = stdout.with_context(|| format!("the output of {name} cannot be read"))?;
    relays.iter().for_each(Relay::wait);
    let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    if echo != Echo::Nothing && output::is_quiet() && !status.success() {
        lines.iter().for_each(|line| output::eprint_always(line));
    }
    Ok(Output { status, stdout, stderr: lines.join("\n").into_bytes() })
}

/// The stdout of `cargo`.
///
/// # Errors
/// As [`run_captured`]; cargo's first error, with what caused it, if it fails.
pub fn cargo(cargo: Command) -> Result<Vec<u8>> {
    let output = run_captured(cargo)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The error ends at an empty line, and names the packages that need each other.
    let lines = stderr.lines().skip_while(|line| !line.starts_with("error: ")).map(str::trim);
    let error = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let error = error.strip_prefix("error: ").unwrap_or("cargo gave no reason");
    let cause = stderr.rsplit_once("Caused by:").and_then(|(_, cause)| cause.trim().lines().next());
    bail!("{error}{}", cause.map(|cause| format!(" ({cause})")).unwrap_or_default())
}
