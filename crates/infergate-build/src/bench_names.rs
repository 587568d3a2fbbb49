//! The bench targets there are, for whoever asked for one that is not.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use super::frameworks::names_ours;
use super::git::git;
use super::manifest::MAX_FILE_BYTES;
use super::package::Package;
use super::workspace;
use crate::wanted::{BenchTarget, Place};
use infergate_core::printable::first_of;
use infergate_core::text_file::read_text;
use infergate_core::worker::WorkerError;

/// Names that a message has room for.
const MOST_NAMES: usize = 12;

/// Refuses a bench target that the working tree lacks. Where cargo cannot tell, it says why when it builds.
pub fn ensure_there(target: &BenchTarget) -> Result<()> {
    match here(target)? {
        Some(names) if !names.contains(&target.target) => {
            bail!("there is no bench target '{}' here; {}", target.target, remedy(&names))
        }
        _ => Ok(()),
    }
}

/// What to do where the working tree lacks it, too. Of the usual one, which nobody named, nothing is said.
pub fn in_neither(target: &BenchTarget, base: &Place) -> Result<WorkerError> {
    let remedy = remedy(&here(target)?.unwrap_or_default());
    Ok(match target.is_named {
        true => no_such_target(target, base, &format!("neither has the working tree; {remedy}")),
        false => WorkerError::NotComparable(remedy),
    })
}

/// A checkout without the bench target, and what to do about it.
pub fn no_such_target(target: &BenchTarget, place: &Place, remedy: &str) -> WorkerError {
    WorkerError::NotComparable(format!("{} has no bench target '{}'; {remedy}", place.name, target.target))
}

fn remedy(names: &BTreeSet<String>) -> String {
    let names: Vec<&String> = names.iter().collect();
    let none = "there are no benches of criterion or divan here";
    let below = with_benches(packages_below(Path::new(".")));
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    match (names.is_empty(), below.is_empty()) {
        (true, true) => format!("{none}, and for an engine the command `init` adds one"),
        (true, false) => format!("{none}; run it in a folder that has some: {}", first_of(&below, MOST_NAMES, ", ")),
        (false, _) => format!("name one with --bench-target: there are {}", first_of(&names, MOST_NAMES, ", ")),
    }
}

/// Folders below `folder` that git knows a package in, which no workspace there need have.
pub fn packages_below(folder: &Path) -> Vec<String> {
    let listed = git(folder, &["ls-files", "--", "*/Cargo.toml"]).unwrap_or_default();
    listed.lines().filter_map(|line| line.strip_suffix("/Cargo.toml")).map(str::to_owned).collect()
}

/// Those of the folders whose packages have benches.
fn with_benches(mut folders: Vec<String>) -> Vec<String> {
    folders.retain(|folder| {
        let text = read_text(&Path::new(folder).join("Cargo.toml"), MAX_FILE_BYTES).unwrap_or_default();
        names_ours(&text) && (text.contains("[[bench]]") || Path::new(folder).join("benches").is_dir())
    });
    folders
}

/// Of the package that was named, else of all; `None` where there is no such package, or cargo cannot tell.
fn here(target: &BenchTarget) -> Result<Option<BTreeSet<String>>> {
    let mut packages = workspace::packages(Path::new("."))?.unwrap_or_default();
    packages.retain(|package| package.is_asked_for(target));
    let benches = packages.iter().flat_map(Package::benches).map(|bench| bench.name.clone());
    Ok((!packages.is_empty()).then(|| benches.collect()))
}
