//! The files a command writes: each can be written, none is read by the same command, and none of an earlier run is left when
//! this one fails.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use clap::{ArgMatches, Command, ValueHint};
use serde::Serialize;

use infergate_build::output;
use infergate_receipts::{Outcome, ensure_writable, to_json, write_json};

/// The file that `--json` names.
static JSON: OnceLock<PathBuf> = OnceLock::new();

/// Removes what an earlier run left in the files to write (`--out`, `--json`), and turns on `--json -`. Runs before anything else, so that
/// even after a mistake in `infergate.toml` nobody finds the verdict of an earlier run.
///
/// # Errors
/// A file that another flag names too, or that cannot be written.
pub fn begin(command: &Command, matches: &ArgMatches) -> Result<()> {
    let (mut seen, mut written) = (Vec::new(), Vec::new());
    // `Other` marks a file that is added to.
    let hints = [ValueHint::AnyPath, ValueHint::Other];
    for arg in command.get_arguments().filter(|arg| hints.contains(&arg.get_value_hint())) {
        let id = arg.get_id().as_str();
        let name = arg.get_long().map_or_else(|| id.to_uppercase(), |long| format!("--{long}"));
        let is_new = arg.get_value_hint() == ValueHint::AnyPath && ["out", "json"].contains(&id);
        let files = if is_new { &mut written } else { &mut seen };
        files.extend(matches.get_raw(id).into_iter().flatten().map(|path| (name.clone(), Path::new(path))));
    }
    for (flag, path) in written {
        if flag == "--json" && output::is_stdout(path) {
            output::set_json();
            continue;
        }
        for (other, known) in &seen {
            ensure!(!same_file(path, known), "{flag}: {} is what {other} names too; name another file", path.display());
        }
        remove_previous(path)?;
        if flag == "--json" {
            let _ = JSON.set(path.to_owned());
        }
        seen.push((flag, path));
    }
    Ok(())
}

/// Removes what an earlier run left at `path`.
///
/// # Errors
/// A file that `--json` names too, or that cannot be written or removed.
pub fn remove_previous(path: &Path) -> Result<()> {
    let is_json = JSON.get().is_some_and(|json| same_file(path, json));
    ensure!(!is_json, "--json: {} is written anyway, with something else; name another file", path.display());
    ensure_writable(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}: what an earlier run left there cannot be removed", path.display()))
        }
        _ => Ok(()),
    }
}

/// Whether both paths lead to one file, also through a link, and also where it does not exist yet.
pub fn same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
    one == other || place(one).is_some_and(|place_of_one| Some(place_of_one) == place(other))
}

/// A file that has the measurements so far during a run. If it cannot be written, that is printed once and the run continues: the
/// measurements are in memory, too.
pub struct Kept<'a> {
    path: &'a Path,
    has_warned: Cell<bool>,
    has_some: Cell<bool>,
}

impl<'a> Kept<'a> {
    /// Keeps into `path`.
    pub fn at(path: &'a Path) -> Self {
        Self { path, has_warned: Cell::new(false), has_some: Cell::new(false) }
    }

    pub fn keep<T: Serialize>(&self, document: &T) {
        match write_json(self.path, document) {
            Ok(()) => self.has_some.set(true),
            Err(_) if self.has_warned.replace(true) => {}
            Err(error) => output::warn("not kept yet", &error),
        }
    }

    /// Prints where a failed run's measurements are, if there are any.
    pub fn print_where(&self) {
        if self.has_some.get() {
            output::status_escaped(&format!("what was measured before is kept in {}", self.path.display()));
        }
    }
}

/// The exit code of a run that is not judged: a partial or invalid one is no success.
pub fn exit_code_of_measuring(partial: bool, invalid: &[String]) -> i32 {
    if partial || !invalid.is_empty() { Outcome::Partial.exit_code() } else { Outcome::Pass.exit_code() }
}

/// Whether a requested file was written. If not, prints why; other files are still written, and the command fails in the end.
pub fn is_written(outcome: Result<()>) -> bool {
    outcome.inspect_err(output::write_failed).is_ok()
}

/// Writes a receipt, and prints where it is.
pub fn receipt<T: Serialize>(path: &Path, receipt: &T, is_partial: bool) {
    if is_written(write_json(path, receipt)) {
        let kept = if is_partial { "interrupted; what was measured is kept in" } else { "receipt:" };
        output::status_escaped(&format!("{kept} {}", path.display()));
    }
}

/// Writes JSON to `path`, if it was requested: to stdout if that is `-`.
pub fn json<T: Serialize>(path: Option<&Path>, document: &T) {
    let Some(path) = path else { return };
    is_written(if output::is_stdout(path) {
        to_json(document).map(|text| output::json(&text))
    } else {
        write_json(path, document)
    });
}
