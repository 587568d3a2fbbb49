//! `[server]`: a server as a worker, started from each checkout or running at given addresses, and the hidden command between the gate
//! and a server.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::config::{Config, ServerConfig, current_folder, scenarios_of};
use crate::paired::{Program, UnderLoad};
use infergate_build::build_command::{self, find};
use infergate_build::watcher;
use infergate_core::case::{BenchName, Case};
use infergate_core::process::this_program;
use infergate_core::worker::Launcher;
use infergate_receipts::{Note, Scenario};

/// The hidden command that measures a server.
pub const COMMAND: &str = "__server-worker";

/// What that command is to do.
#[derive(Serialize, Deserialize)]
struct Work {
    server: ServerConfig,
    scenarios: Vec<Scenario>,
    /// The server's address, where it runs already.
    url: Option<String>,
}

/// Builds the server in `folder` and gives it as a worker. `side` is how messages name it: `base`.
pub fn program(
    config: &Config,
    folder: &Path,
    side: &str,
    commit: Option<String>,
    dirty: Option<bool>,
) -> Result<Program> {
    let server =
        ServerConfig { command: build_command::of_side(&config.server.command, side), ..config.server.clone() };
    build_command::run(&server.build, folder, side, "server.build")?;
    let first = server.command.first();
    let first = first.context("--server: infergate.toml names no server.command; add [server] with one")?;
    let path = find(first, folder).with_context(|| {
        format!(
            "{side}: server.command: there is no program '{first}' in {}; build it with server.build",
            folder.display()
        )
    })?;
    let launcher = watcher::launcher(arguments(server, None)?, folder.to_owned())?;
    Ok(Program { launcher: Some(launcher), ..Program::new(path, commit, dirty) })
}

/// The servers that run at `urls`; blocks take them in turn.
pub fn running(config: &Config, urls: &[String]) -> Result<Program> {
    let (program, folder) = (this_program()?, current_folder()?);
    let launcher = |url: &String| {
        infergate_load::client::url::Url::parse(url, config.server.api)?;
        let arguments = arguments(config.server.clone(), Some(url.clone()))?;
        Ok(Launcher { program: program.clone(), arguments, folder: folder.clone() })
    };
    let servers: Vec<Launcher> = urls.iter().map(launcher).collect::<Result<_>>()?;
    Ok(Program { launcher: servers.first().cloned(), servers, ..Program::new(program.clone(), None, None) })
}

/// One table of scenarios for both sides: the work has to be the same.
fn arguments(server: ServerConfig, url: Option<String>) -> Result<Vec<OsString>> {
    let work = serde_json::to_string(&Work { server, scenarios: scenarios()?, url })?;
    Ok(vec![COMMAND.into(), work.into()])
}

/// The case that a memory phase repeats.
pub fn memory_case() -> Result<Case> {
    let first = scenarios()?.first().map(|scenario| scenario.name.clone()).unwrap_or_default();
    Ok(Case::Bench(BenchName::new(&format!("{first}/ttft"))?))
}

/// Which turns of the scenarios the gate leaves out.
pub fn notes() -> Result<Vec<Note>> {
    let note = |one: &Scenario| format!("{}: each request is a first turn; `load` measures conversations", one.name);
    Ok(scenarios()?.iter().filter(|one| one.turns > 1).map(note).map(Note::from).collect())
}

/// The users that servers are measured under; `None`: one request at a time.
pub fn under_load(config: &Config) -> Option<UnderLoad> {
    let ServerConfig { users, window_s, .. } = config.server;
    users.map(|users| UnderLoad { users, window_s })
}

/// Those of infergate.toml, or the first of those that `load` has.
fn scenarios() -> Result<Vec<Scenario>> {
    let own = scenarios_of(&current_folder()?)?;
    Ok(if own.is_empty() { Scenario::defaults().into_iter().take(1).collect() } else { own })
}

/// The hidden command that measures a server.
#[derive(Args)]
pub struct ServerWorker {
    work: String,
    // The word that makes any program a worker comes after all others.
    #[arg(long = infergate_core::worker::WORKER_ARGUMENT.trim_start_matches('-'))]
    _is_worker: bool,
}

pub fn serve(options: &ServerWorker) -> Result<i32> {
    use crate::server::{Start, worker};
    use infergate_load::api::body::Wanted;

    let work: Work = serde_json::from_str(&options.work).context("the work cannot be read")?;
    let ServerConfig { command, ready, ready_s, model, api, ignore_eos, check_output, users, .. } = work.server;
    let ready_within = std::time::Duration::from_secs(ready_s);
    let server = match work.url {
        Some(url) => worker::Where::Running(url),
        None => worker::Where::Started(Start { command, ready, ready_within }),
    };
    let wanted = Wanted { api, model, limit_field: "max_tokens", ignore_eos, min_tokens: ignore_eos, usage: true };
    worker::serve(worker::Job { server, wanted, scenarios: work.scenarios, check_output, users })?;
    Ok(0)
}
