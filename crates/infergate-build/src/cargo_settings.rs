//! Cargo's settings, `.cargo/config.toml`, as far as they concern a bench.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use super::manifest::table;

/// The settings that hold for cargo in `folder`, with the folder that each counts paths from; what lies nearer goes first. A file that is
/// no TOML is left out: cargo says so when it builds.
pub fn all(folder: &Path) -> impl Iterator<Item = (PathBuf, Table)> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let above: Vec<PathBuf> = folder.ancestors().map(|above| above.join(".cargo")).collect();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    above.into_iter().chain(home).filter_map(|place| {
        let file = file(&place)?;
        Some((place.parent()?.to_owned(), table(&file).ok()?))
    })
}

/// Whether `folder` itself has some. Cargo's home can lie in it, too.
pub fn are_in(folder: &Path) -> bool {
    file(&folder.join(".cargo")).is_some()
}

/// The file of a folder `.cargo`.
pub fn file(place: &Path) -> Option<PathBuf> {
    ["config", "config.toml"].map(|name| place.join(name)).into_iter().find(|file| file.is_file())
}

/// Lets cargo put what it makes on its way into `folder`, which lies below `place`: one that its settings name would be both sides', and
/// a program of one would be taken for the other's. Cargo reads a word in braces as a variable, and refuses those that it does not know.
pub fn keep_build_folder(cargo: &mut Command, place: &Path, folder: impl AsRef<OsStr>) {
    if !place.to_string_lossy().contains(['{', '}']) {
        cargo.env("CARGO_BUILD_BUILD_DIR", folder);
    }
}

/// The table `[env]`: variables that cargo, run in `folder`, gives to a bench.
pub fn variables(folder: &Path) -> Vec<(OsString, OsString)> {
    let mut found = BTreeMap::new();
    for (place, settings) in all(folder) {
        for (name, value) in settings.get("env").and_then(Value::as_table).into_iter().flatten() {
            found.entry(name.clone()).or_insert_with(|| variable(name, value, &place));
        }
    }
    found.into_iter().filter_map(|(name, value)| Some((name.into(), value?))).collect()
}

/// What a variable is set to, by cargo's rules: one that is set already stays, unless it is forced.
fn variable(name: &str, value: &Value, place: &Path) -> Option<OsString> {
    let is = |key: &str| value.get(key).and_then(Value::as_bool) == Some(true);
    let text = value.as_str().or_else(|| value.get("value")?.as_str())?;
    if env::var_os(name).is_some() && !is("force") {
        return None;
    }
    Some(if is("relative") { place.join(text).into() } else { text.into() })
}
