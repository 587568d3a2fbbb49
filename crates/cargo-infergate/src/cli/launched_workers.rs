//! Wraps commands and servers as workers: a program that runs once a sample (`[worker]`), and a server (`[server]`) that is started from
//! each checkout or runs at given addresses. A hidden command stands between the gate and either.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::command_worker;
use crate::config::{Config, ServerConfig, current_folder};
use crate::paired::Program;
use crate::server::worker;
use infergate_build::build_command::{self, find};
use infergate_build::watcher;
use infergate_core::case::{BenchName, Case};
use infergate_core::process::this_program;
use infergate_core::worker::{Launcher, WORKER_ARGUMENT};
use infergate_load::client::url::Url;
use infergate_receipts::{Note, Scenario};

/// The hidden command.
pub const COMMAND: &str = "__worker";

/// What the hidden command runs.
#[derive(Serialize, Deserialize)]
enum LaunchJob {
    Program(command_worker::Job),
    Server(worker::Job),
}

impl LaunchJob {
    fn words(&self) -> Result<Vec<OsString>> {
        Ok(vec![COMMAND.into(), serde_json::to_string(self)?.into()])
    }
}

/// Builds the server, or the program of `[worker]`, in `folder`, and gives it as a worker. `side` is how messages name it: `base`.
pub fn build_launched(
    config: &Config,
    is_server: bool,
    folder: &Path,
    side: &str,
    (commit, dirty): (Option<String>, Option<bool>),
) -> Result<Program> {
    let (key, build, words) = if is_server {
        ("server", &config.server.build, &config.server.command)
    } else {
        ("worker", &config.worker.build, &config.worker.command)
    };
    build_command::run(build, folder, side, &format!("{key}.build"))?;
    let command = build_command::of_side(words, side);
    let (first, arguments) = command
        .split_first()
        .with_context(|| format!("infergate.toml names no {key}.command; add [{key}] with one"))?;
    let path = find(first, folder).with_context(|| {
        format!(
            "{side}: {key}.command: there is no program '{first}' in {}; build it with {key}.build",
            folder.display()
        )
    })?;
    let job = match is_server {
        true => {
            let settings = ServerConfig { command, ..config.server.clone() };
            LaunchJob::Server(worker::Job { settings, scenarios: scenarios(config), url: None })
        }
        false => {
            // The same on both sides, whatever {side} becomes.
            let name = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy();
            LaunchJob::Program(command_worker::Job {
                case: Case::Bench(BenchName::new(&name)?),
                program: path.clone(),
                arguments: arguments.to_vec(),
                check_output: config.worker.check_output,
            })
        }
    };
    let launcher = watcher::launcher(job.words()?, folder.to_owned())?;
    Ok(Program { commit, dirty, launcher: Some(launcher), ..Program::new(path) })
}

/// The servers that run at `urls`; blocks take them in turn.
pub fn running(config: &Config, urls: &[String]) -> Result<Program> {
    let (program, folder) = (this_program()?, current_folder()?);
    let launcher = |url: &String| {
        Url::parse(url, config.server.api)?;
        let job = worker::Job { settings: config.server.clone(), scenarios: scenarios(config), url: Some(url.clone()) };
        Ok(Launcher { program: program.clone(), arguments: LaunchJob::Server(job).words()?, folder: folder.clone() })
    };
    let servers: Vec<Launcher> = urls.iter().map(launcher).collect::<Result<_>>()?;
    Ok(Program { launcher: servers.first().cloned(), servers, ..Program::new(program) })
}

/// The case that a memory phase of a server repeats.
pub fn memory_case(config: &Config) -> Result<Case> {
    Ok(Case::Bench(BenchName::new(&format!("{}/ttft", scenarios(config)[0].name))?))
}

/// Notes about scenarios with several turns, of which the gate sends only the first.
pub fn notes(config: &Config) -> Vec<Note> {
    let note = |one: &Scenario| format!("{}: each request is a first turn; `load` measures conversations", one.name);
    scenarios(config).iter().filter(|one| one.turns > 1).map(note).map(Note::from).collect()
}

/// The scenarios of infergate.toml, the same for both sides, or the first one of `load`: at least one.
fn scenarios(config: &Config) -> Vec<Scenario> {
    let own = &config.tables.scenarios;
    if own.is_empty() { Scenario::defaults().into_iter().take(1).collect() } else { own.clone() }
}

/// The hidden command.
#[derive(Args)]
pub struct Worker {
    work: String,
    // The argument that makes any program a worker comes last.
    #[arg(long = WORKER_ARGUMENT.trim_start_matches('-'))]
    _is_worker: bool,
}

pub fn serve(options: &Worker) -> Result<i32> {
    match serde_json::from_str(&options.work).context("the work cannot be read")? {
        LaunchJob::Program(job) => command_worker::serve(job)?,
        LaunchJob::Server(job) => worker::serve(job)?,
    }
    Ok(0)
}
