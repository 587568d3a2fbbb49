//! A program that is asked something: all that it says until it ends. Cargo may wait for another cargo, and rustup for the network;
//! none of that outlives the wish of the user to end.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use infergate_core::process::Group;
use infergate_core::worker::WorkerError;

use super::progress;

/// Runs `command` without input. It is ended, with all that it started, once the user wants the run to end.
///
/// # Errors
/// A program that cannot be started; [`WorkerError::Interrupted`] where the user ended it.
pub fn output(mut command: Command) -> Result<Output> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process =
        Group::spawn(&mut command).with_context(|| format!("{name} cannot be started; is it installed?"))?;
    let (_, said, words) = process.take_pipes();
    let (said, words) = (thread::spawn(move || all(said)), thread::spawn(move || all(words)));
    let status = progress::until_ended(&mut process, &|| false);
    if progress::is_cancelled() {
        return Err(WorkerError::by_user().into());
    }
    let read = |thread: JoinHandle<io::Result<Vec<u8>>>| {
        let read = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.with_context(|| format!("what {name} says cannot be read"))
    };
    let status = status.with_context(|| format!("{name} cannot be waited for"))?;
    Ok(Output { status, stdout: read(said)?, stderr: read(words)? })
}

fn all(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
    Ok(bytes)
}
