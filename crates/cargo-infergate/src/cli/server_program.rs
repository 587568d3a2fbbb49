//! `[server]`: a server as a worker, started from each checkout or running at two addresses.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use super::scenarios::scenarios_of;
use crate::config::{Config, ServerConfig};
use crate::paired::{Program, UnderLoad};
use infergate_build::build_command::{self, find};
use infergate_build::watcher;
use infergate_core::case::{BenchName, Case};
use infergate_core::process::this_program;
use infergate_core::worker::Launcher;
use infergate_receipts::{Note, Scenario};

/// The hidden command that measures a server.
pub const COMMAND: &str = "__server-worker";

/// Builds the server in `folder` and gives it as a worker. `side` is how messages name it: `base`.
pub fn program(
    config: &Config,
    folder: &Path,
    side: &str,
    commit: Option<String>,
    dirty: Option<bool>,
) -> Result<Program> {
    let asked = &config.server;
    let command = build_command::of_side(&asked.command, side);
    build_command::run(&asked.build, folder, side, "server.build")?;
    let first = command.first();
    let first = first.context("--server: infergate.toml names no server.command; add [server] with one")?;
    let path = find(first, folder).with_context(|| {
        format!(
            "{side}: server.command: there is no program '{first}' in {}; build it with server.build",
            folder.display()
        )
    })?;
    // One table for both sides: the work has to be the same.
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let mut words = words(asked, &scenarios(&here)?)?;
    words.push("--".into());
    words.extend(command.iter().map(OsString::from));
    let launcher = watcher::launcher(words, folder.to_owned())?;
    Ok(Program { launcher: Some(launcher), ..Program::new(path, commit, dirty) })
}

/// The servers that run at `urls`; blocks take them in turn.
pub fn running(config: &Config, urls: &[String]) -> Result<Program> {
    #[cfg(feature = "load")]
    for url in urls {
        infergate_load::client::url::Url::parse(url, config.server.api)?;
    }
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let (program, words) = (this_program()?, words(&config.server, &scenarios(&here)?)?);
    let asking = |url: &String| {
        let arguments = words.iter().cloned().chain(["--url".into(), url.into()]).collect();
        Launcher { program: program.clone(), arguments, folder: here.clone() }
    };
    let servers: Vec<Launcher> = urls.iter().map(asking).collect();
    Ok(Program { launcher: servers.first().cloned(), servers, ..Program::new(program.clone(), None, None) })
}

/// The case that a memory phase repeats.
pub fn memory_case() -> Result<Case> {
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let first = scenarios(&here)?.first().map(|scenario| scenario.name.clone()).unwrap_or_default();
    Ok(Case::Bench(BenchName::new(&format!("{first}/ttft"))?))
}

/// What of the scenarios the gate does not ask.
pub fn notes() -> Result<Vec<Note>> {
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    let said = |one: &Scenario| format!("{}: each request is a first turn; `load` measures conversations", one.name);
    Ok(scenarios(&here)?.iter().filter(|one| one.turns > 1).map(said).map(Note::from).collect())
}

/// The users that servers are measured under, where some were asked for.
pub fn under_load(config: &Config) -> Option<UnderLoad> {
    let ServerConfig { users, window_s, .. } = config.server;
    users.map(|users| UnderLoad { users, window_s, limits: config.limits() })
}

/// Those of infergate.toml, or the first of those that `load` has.
fn scenarios(folder: &Path) -> Result<Vec<Scenario>> {
    let own = scenarios_of(folder)?;
    Ok(if own.is_empty() { Scenario::defaults().into_iter().take(1).collect() } else { own })
}

fn words(asked: &ServerConfig, scenarios: &[Scenario]) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> = vec![COMMAND.into()];
    words.extend(["--scenarios".into(), serde_json::to_string(scenarios)?.into()]);
    words.extend(["--api".into(), asked.api.name().into(), "--model".into(), asked.model.clone().into()]);
    words.extend(["--ready".into(), asked.ready.clone().into()]);
    words.extend(["--ready-s".into(), asked.ready_s.to_string().into()]);
    words.extend(asked.check_output.then(|| "--check-output".into()));
    words.extend(asked.ignore_eos.then(|| "--ignore-eos".into()));
    if let Some(users) = asked.users {
        words.extend(["--users".into(), users.to_string().into()]);
    }
    Ok(words)
}
