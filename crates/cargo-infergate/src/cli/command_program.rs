//! `[worker]`: a program that is run once a sample, built in each checkout.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::builds::build_command::{find, run};
use crate::command_worker::{self, COMMAND, Job};
use crate::config::WorkerCommand;
use crate::paired::Program;
use crate::watcher;
use infergate_core::case::BenchName;

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
    run(&asked.build, folder, side, "worker.build")?;
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

/// The hidden command that measures such a program.
pub fn worker_command() -> clap::Command {
    clap::Command::new(COMMAND)
        .hide(true)
        .arg(Arg::new("name").long("name").required(true))
        .arg(Arg::new("check-output").long("check-output").action(ArgAction::SetTrue))
        // The word that makes any program a worker comes behind all others.
        .arg(Arg::new("command").num_args(1..).last(true).required(true).value_parser(value_parser!(OsString)))
}

/// Runs it.
///
/// # Errors
/// As [`command_worker::serve`].
pub fn serve(matches: &ArgMatches) -> Result<i32> {
    let name = matches.get_one::<String>("name").context("no name was given")?;
    let mut command: Vec<OsString> = matches.get_many("command").into_iter().flatten().cloned().collect();
    // What every worker is told, which is not for the program.
    if command.last().is_some_and(|word| word == infergate_core::worker::WORKER_ARGUMENT) {
        command.pop();
    }
    let job = Job { name: BenchName::new(name)?, command, check_output: matches.get_flag("check-output") };
    command_worker::serve(job)?;
    Ok(0)
}
