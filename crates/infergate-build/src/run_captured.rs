//! Programs whose output is read once they have ended. Cargo may wait for another cargo, and rustup for the network: none of that
//! outlives the user's wish to end.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use infergate_core::process::Group;
use infergate_core::relay::Relay;

use super::{output, progress};
use crate::watcher::watched;

/// As many lines of stderr are kept, and the last one.
const MOST_LINES: usize = 10_000;
/// The time of a program that compiles nothing, such as git, which may fetch a large submodule.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Which output of a program is shown as it comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    /// In its colours.
    Stderr,
    /// Stdout, too, which is then given as stderr.
    All,
}

/// [`run`] for a program that compiles nothing: nothing is shown, and it is ended after an hour.
///
/// # Errors
/// As [`run`], and after that hour.
pub fn run_captured(command: Command) -> Result<Output> {
    run_within(LIMIT, command, Shown::Nothing)
}

/// Runs `command` without input and under a watcher. It is ended, with all that it started, once the user wants the run to end or this
/// process has ended. What is given of stderr has no colours. With `--quiet` it is shown once the program has failed.
///
/// # Errors
/// A program that cannot be started; [`WorkerError::Interrupted`](infergate_core::worker::WorkerError::Interrupted) if the user ended it.
pub fn run(command: Command, shown: Shown) -> Result<Output> {
    run_within(Duration::MAX, command, shown)
}

fn run_within(limit: Duration, command: Command, shown: Shown) -> Result<Output> {
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
            if shown != Shown::Nothing {
                output::say(line);
            }
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(MOST_LINES);
            kept.push(anstream::adapter::strip_str(line).to_string());
        })
    };
    let mut relays: Vec<Relay> = stderr.into_iter().map(|pipe| relay(Box::new(pipe))).collect();
    if shown == Shown::All {
        relays.extend(stdout.take().map(|pipe| relay(Box::new(pipe))));
    }
    let stdout = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
    });
    let begun = Instant::now();
    let is_late = || begun.elapsed() >= limit;
    let status = progress::until_ended(&mut process, || progress::is_cancelled() || is_late());
    progress::ensure_not_cancelled()?;
    let status = status.with_context(|| format!("{name} cannot be waited for"))?;
    let shown_limit = humantime::format_duration(limit);
    ensure!(
        status.success() || !is_late(),
        "{name} was ended after {shown_limit}; run it by hand to see what it waits for"
    );
    let stdout = stdout.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let stdout = stdout.with_context(|| format!("the output of {name} cannot be read"))?;
    relays.iter().for_each(Relay::wait);
    let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    if shown != Shown::Nothing && output::is_quiet() && !status.success() {
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
    // It goes on up to an empty line: who needs what.
    let lines = stderr.lines().skip_while(|line| !line.starts_with("error: ")).map(str::trim);
    let error = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let error = error.strip_prefix("error: ").unwrap_or("cargo gave no reason");
    let cause = stderr.rsplit_once("Caused by:").and_then(|(_, cause)| cause.trim().lines().next());
    bail!("{error}{}", cause.map(|cause| format!(" ({cause})")).unwrap_or_default())
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{Shown, run_within};

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let mut stopped = Command::new("sh");
        stopped.args(["-c", "kill -STOP $$"]);
        let error = run_within(Duration::ZERO, stopped, Shown::Nothing).expect_err("it never ends");
        assert_eq!(error.to_string(), "sh was ended after 0s; run it by hand to see what it waits for");
    }
}
