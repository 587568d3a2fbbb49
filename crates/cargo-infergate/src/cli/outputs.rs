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

/// What `--json` names.
static JSON: OnceLock<PathBuf> = OnceLock::new();

/// Refuses a file to write (`--out`, `--json`) that another flag names too, or cannot be written, and removes what an earlier run left
/// there. Before anything else is done, so that also a mistake in `infergate.toml` leaves no verdict of an earlier run for whoever reads
/// the file next. From now on `--json -` holds.
pub fn begin(command: &Command, matches: &ArgMatches) -> Result<()> {
    let (mut seen, mut written) = (Vec::new(), Vec::new());
    // What the other hint stands at is added to, and no new file.
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

/// Whether `path` can be written, and is not what `--json` names; what an earlier run left there is removed.
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

/// Where what is measured is kept all along. A disk that is full is said once and ends no run: what is measured is in memory, too.
pub struct Kept<'a> {
    path: &'a Path,
    has_warned: Cell<bool>,
    has_some: Cell<bool>,
}

impl<'a> Kept<'a> {
    /// In this file.
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

    /// Says where it is what a run that failed had measured, unless that is nothing.
    pub fn print_where(&self) {
        if self.has_some.get() {
            output::status_escaped(&format!("what was measured before is kept in {}", self.path.display()));
        }
    }
}

/// The exit code of what was measured and not judged: if it is not whole or not sound it is no success.
pub fn exit_code_of_measuring(partial: bool, invalid: &[String]) -> i32 {
    if partial || !invalid.is_empty() { Outcome::Partial.exit_code() } else { Outcome::Pass.exit_code() }
}

/// Whether a file that was asked for is written; says why it is not. One that cannot be written stops no other, and is no success.
pub fn is_written(outcome: Result<()>) -> bool {
    outcome.inspect_err(output::write_failed).is_ok()
}

/// Writes a receipt, and says where it is.
pub fn receipt<T: Serialize>(path: &Path, receipt: &T, is_partial: bool) {
    if is_written(write_json(path, receipt)) {
        let kept = if is_partial { "interrupted; what was measured is kept in" } else { "receipt:" };
        output::status_escaped(&format!("{kept} {}", path.display()));
    }
}

/// Writes JSON where it was asked for, if it was: to stdout where `path` is `-`.
pub fn json<T: Serialize>(path: Option<&Path>, document: &T) {
    let Some(path) = path else { return };
    is_written(if output::is_stdout(path) {
        to_json(document).map(|text| output::json(&text))
    } else {
        write_json(path, document)
    });
}
