//! Programs whose output is read once they have ended. Cargo may wait for another cargo, and rustup for the network: none of that
//! outlives the user's wish to end.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail};
use infergate_core::process::Group;
use infergate_core::worker::WorkerError;

use super::progress;

/// Runs `command` without input. It is ended, with all that it started, once the user wants the run to end.
///
/// # Errors
/// A program that cannot be started; [`WorkerError::Interrupted`] if the user ended it.
pub fn run_captured(mut command: Command) -> Result<Output> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process =
        Group::spawn(&mut command).with_context(|| format!("{name} cannot be started; is it installed?"))?;
    let (_, stdout, stderr) = process.take_pipes();
    let (stdout, stderr) = (thread::spawn(move || all(stdout)), thread::spawn(move || all(stderr)));
    let status = progress::until_ended(&mut process, &|| false);
    if progress::is_cancelled() {
        return Err(WorkerError::by_user().into());
    }
    let read = |thread: JoinHandle<io::Result<Vec<u8>>>| {
        let read = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.with_context(|| format!("the output of {name} cannot be read"))
    };
    let status = status.with_context(|| format!("{name} cannot be waited for"))?;
    Ok(Output { status, stdout: read(stdout)?, stderr: read(stderr)? })
}

/// The stdout of `cargo`. `hint` follows the reason if versions conflict.
///
/// # Errors
/// As [`run_captured`]; cargo's first error, with what caused it, if it fails.
pub fn cargo(cargo: Command, hint: &str) -> Result<Vec<u8>> {
    let output = run_captured(cargo)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let Some(error) = stderr.lines().find_map(|line| line.strip_prefix("error: ")) else {
        bail!("cargo gave no reason")
    };
    // Of a package of the repository cargo names the folder.
    let others = |line: &&str| !line.contains('(');
    match stderr.lines().filter_map(|line| line.split("required by package ").nth(1)).find(others) {
        Some(package) => bail!("{} It is required by {package}{hint}", error.trim_end()),
        None => {
            let cause = stderr
                .rsplit_once("Caused by:")
                .and_then(|(_, cause)| cause.lines().map(str::trim).find(|line| !line.is_empty()));
            bail!("{error}{}", cause.map_or_else(String::new, |cause| format!(" ({cause})")))
        }
    }
}

fn all(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
    Ok(bytes)
}
