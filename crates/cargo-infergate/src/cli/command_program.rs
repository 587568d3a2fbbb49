//! `[worker]`: a program that is run once a sample, built in each checkout.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::{output, progress, toolchain};
use crate::command_worker::{self, COMMAND, Job};
use crate::config::WorkerCommand;
use crate::paired::Program;
use crate::report::words;
use crate::watcher::{self, watched};
use infergate_core::case::BenchName;
use infergate_core::process::Group;
use infergate_core::relay::Relay;
use infergate_core::worker::{WorkerError, ending};

/// Builds the command in `folder` and gives it as a worker. `side` is how messages name it: `base`.
///
/// # Errors
/// A build that fails, a program that is not there.
pub fn program(
    asked: &WorkerCommand,
    folder: &Path,
    side: &str,
    commit: Option<String>,
    dirty: Option<bool>,
) -> Result<Program> {
    run_build(&asked.build, folder, side, "worker.build")?;
    let (first, arguments) = asked.command.split_first().context("worker.command names no program")?;
    let path = find(first, folder).with_context(|| {
        format!(
            "{side}: worker.command: there is no program '{first}' in {}; build it with worker.build",
            folder.display()
        )
    })?;
    let name = Path::new(first).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut words: Vec<OsString> = vec![COMMAND.into(), "--name".into(), name.into()];
    if asked.check_output {
        words.push("--check-output".into());
    }
    words.extend(["--".into(), path.clone().into_os_string()]);
    words.extend(arguments.iter().map(OsString::from));
    let launcher = watcher::launcher(words, folder.to_owned())?;
    Ok(Program { launcher: Some(launcher), ..Program::new(path, commit, dirty) })
}

/// Runs what builds a side, if anything does; `key` is the key that names it.
///
/// # Errors
/// When it cannot be started, or fails.
pub fn run_build(build: &[String], folder: &Path, side: &str, key: &str) -> Result<()> {
    let Some((program, arguments)) = build.split_first() else { return Ok(()) };
    // Whoever writes the settings may be the one whose change is gated.
    let words: Option<Vec<String>> = build.iter().map(|word| words::command::word(word)).collect();
    output::line(&format!("{side}: {}", words.map_or_else(|| key.to_owned(), |words| words.join(" "))));
    let mut command = watched(Command::new(find(program, folder).unwrap_or_else(|| program.into())));
    // Each checkout builds into a folder of its own.
    command.args(arguments).current_dir(folder).env_remove("CARGO_TARGET_DIR");
    toolchain::choose(&mut command, folder);
    let (words, both) = std::io::pipe().context("no pipe for the build's words")?;
    command.stdin(Stdio::null()).stdout(both.try_clone().context("no pipe for the build's words")?).stderr(both);
    let started = Group::spawn(&mut command);
    // Its copies of the pipe's end: while they are open there is always more to wait for.
    drop(command);
    let words = Relay::to_stderr(words);
    let status = started.and_then(|mut build| progress::until_ended(&mut build, &|| false));
    words.finish();
    let status = status.with_context(|| format!("{side}: {key}: '{program}' cannot be started"))?;
    if progress::is_cancelled() {
        return Err(WorkerError::by_user().into());
    }
    ensure!(status.success(), "{side}: {key} failed ({}); its words are above", ending(status));
    Ok(())
}

/// A name with a folder counts from the checkout; one without is looked for on the PATH.
pub fn find(program: &str, folder: &Path) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        let path = std::path::absolute(folder.join(program)).ok()?;
        return path.is_file().then_some(path);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|place| place.join(program)).find(|path| path.is_file())
}

/// The hidden command that measures such a program.
#[derive(Args)]
pub struct CommandWorker {
    #[arg(long)]
    name: String,
    #[arg(long)]
    check_output: bool,
    // The word that makes any program a worker comes behind all others.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs it.
///
/// # Errors
/// As [`command_worker::serve`].
pub fn serve(asked: CommandWorker) -> Result<i32> {
    let CommandWorker { name, check_output, mut command } = asked;
    // What every worker is told, which is not for the program.
    if command.last().is_some_and(|word| word == infergate_core::worker::WORKER_ARGUMENT) {
        command.pop();
    }
    command_worker::serve(Job { name: BenchName::new(&name)?, command, check_output })?;
    Ok(0)
}
