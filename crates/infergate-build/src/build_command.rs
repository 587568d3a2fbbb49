//! A command of somebody's own that builds a side, run in its folder.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{cargo_settings, output, progress, toolchain};
use crate::watcher::watched;
use infergate_core::process::Group;
use infergate_core::relay::Relay;
use infergate_core::worker::{WorkerError, ending};
use infergate_receipts::shell;

/// What stands in a word of a command for the side it is of, `base` or `head`.
const SIDE: &str = "{side}";

/// The words of a command as they are for `side`.
pub fn of_side(words: &[String], side: &str) -> Vec<String> {
    words.iter().map(|word| word.replace(SIDE, side)).collect()
}

/// Runs what builds a side, if anything does; `key` is the key that names it.
pub fn run(build: &[String], folder: &Path, side: &str, key: &str) -> Result<()> {
    let build = of_side(build, side);
    let Some((program, arguments)) = build.split_first() else { return Ok(()) };
    // Whoever writes the settings may be the one whose change is gated.
    let quoted: Option<Vec<String>> = build.iter().map(|word| shell::word(word)).collect();
    output::line(&format!("{side}: {}", quoted.map_or_else(|| key.to_owned(), |words| words.join(" "))));
    let mut command = watched(Command::new(find(program, folder).unwrap_or_else(|| program.into())));
    // Each checkout builds into a folder of its own.
    command.args(arguments).current_dir(folder).env_remove("CARGO_TARGET_DIR");
    cargo_settings::keep_build_folder(&mut command, folder, "{workspace-root}/target");
    toolchain::choose(&mut command, folder);
    let (printed, both) = std::io::pipe().context("no pipe for the build's output")?;
    command.stdin(Stdio::null()).stdout(both.try_clone().context("no pipe for the build's output")?).stderr(both);
    let started = Group::spawn(&mut command);
    // Its copies of the pipe's end: while they are open there is always more to wait for.
    drop(command);
    let printed = Relay::to_stderr(printed);
    let status = started.and_then(|mut build| progress::until_ended(&mut build, &|| false));
    printed.finish();
    let remedy = match program.contains(' ') {
        true => "; in a flag or variable a comma separates program and arguments",
        false => "",
    };
    let status = status.with_context(|| format!("{side}: {key}: '{program}' cannot be started{remedy}"))?;
    if progress::is_cancelled() {
        return Err(WorkerError::by_user().into());
    }
    ensure!(status.success(), "{side}: {key} failed ({}); its output is above{remedy}", ending(status));
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
