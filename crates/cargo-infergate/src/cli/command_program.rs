//! `[worker]`: a program that is run once a sample, built in each checkout.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;

use crate::command_worker::{self, COMMAND, Job};
use crate::config::Config;
use crate::paired::Program;
use infergate_build::build_command::{find, of_side, run};
use infergate_build::watcher;
use infergate_core::case::BenchName;

/// Builds the command in `folder` and gives it as a worker. `side` is how messages name it: `base`.
pub fn program(
    config: &Config,
    folder: &Path,
    side: &str,
    commit: Option<String>,
    dirty: Option<bool>,
) -> Result<Program> {
    let worker = &config.worker;
    run(&worker.build, folder, side, "worker.build")?;
    let command = of_side(&worker.command, side);
    let (first, arguments) = command.split_first().context("worker.command names no program")?;
    let path = find(first, folder).with_context(|| {
        format!(
            "{side}: worker.command: there is no program '{first}' in {}; build it with worker.build",
            folder.display()
        )
    })?;
    let name = Path::new(first).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut words: Vec<OsString> = vec![COMMAND.into(), "--name".into(), name.into()];
    if worker.check_output {
        words.push("--check-output".into());
    }
    words.extend(["--".into(), path.clone().into_os_string()]);
    words.extend(arguments.iter().map(OsString::from));
    let launcher = watcher::launcher(words, folder.to_owned())?;
    Ok(Program { launcher: Some(launcher), ..Program::new(path, commit, dirty) })
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

pub fn serve(options: CommandWorker) -> Result<i32> {
    let CommandWorker { name, check_output, mut command } = options;
    // What every worker is told, which is not for the program.
    if command.last().is_some_and(|word| word == infergate_core::worker::WORKER_ARGUMENT) {
        command.pop();
    }
    command_worker::serve(Job { name: BenchName::new(&name)?, command, check_output })?;
    Ok(0)
}
