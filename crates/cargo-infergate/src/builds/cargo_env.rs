//! The table `[env]` of cargo's settings: `cargo bench` gives those variables to a bench.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::swap::table;

/// The variables that cargo, run in `folder`, gives to what it runs. A file that is no TOML has none: cargo says so when it builds.
pub fn of(folder: &Path) -> Vec<(OsString, OsString)> {
    let Ok(folder) = std::path::absolute(folder) else { return Vec::new() };
    let mut found = BTreeMap::new();
    // What lies nearer goes first.
    for place in folder.ancestors().map(|above| above.join(".cargo")).chain(home()) {
        let file = ["config", "config.toml"].map(|name| place.join(name)).into_iter().find(|file| file.is_file());
        let settings = file.and_then(|file| table(&file).ok()).unwrap_or_default();
        for (name, value) in settings.get("env").and_then(Value::as_table).into_iter().flatten() {
            found.entry(name.clone()).or_insert_with(|| given(name, value, &place));
        }
    }
    found.into_iter().filter_map(|(name, value)| Some((name.into(), value?))).collect()
}

fn home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// The value of a variable that `place` sets, by the rules of cargo: what is set already stays, unless it is forced.
fn given(name: &str, value: &Value, place: &Path) -> Option<OsString> {
    let (text, table) = match value {
        Value::String(text) => (text.as_str(), Table::new()),
        Value::Table(table) => (table.get("value")?.as_str()?, table.clone()),
        _ => return None,
    };
    let is = |key: &str| table.get(key).and_then(Value::as_bool) == Some(true);
    if env::var_os(name).is_some() && !is("force") {
        return None;
    }
    // Counted from the folder that `.cargo` is in.
    Some(if is("relative") { place.parent()?.join(text).into() } else { text.into() })
}
