//! Runs the user's build command of a side in the side's folder.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::run_captured::{self, Echo};
use super::{cargo_settings, output, toolchain};
use infergate_core::worker::ending;

/// The placeholder for `base` or `head` in a command.
const SIDE: &str = "{side}";

/// A command with the placeholder replaced by `side`.
pub fn of_side(words: &[String], side: &str) -> Vec<String> {
    words.iter().map(|word| word.replace(SIDE, side)).collect()
}

/// Runs the build command; an empty one does nothing. `key` is its key in infergate.toml.
pub fn run(build: &[String], folder: &Path, side: &str, key: &str) -> Result<()> {
    let build = of_side(build, side);
    let Some((program, arguments)) = build.split_first() else { return Ok(()) };
    output::status_escaped(&format!("{side}: {}", build.join(" ")));
    let mut command = Command::new(program);
    // Each checkout builds into a folder of its own.
    command.args(arguments).current_dir(folder).env_remove("CARGO_TARGET_DIR");
    cargo_settings::keep_build_folder(&mut command, folder, "{workspace-root}/target");
    toolchain::choose(&mut command, folder);
    let built = run_captured::run(command, Echo::All).with_context(|| format!("{side}: {key}"))?;
    ensure!(built.status.success(), "{side}: {key} failed ({}); its output is above", ending(built.status));
    Ok(())
}

/// The path of a program. A name with a folder is relative to the checkout; one without is searched on the PATH.
pub fn find(program: &str, folder: &Path) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        let path = std::path::absolute(folder.join(program)).ok()?;
        return path.is_file().then_some(path);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|place| place.join(program)).find(|path| path.is_file())
}
