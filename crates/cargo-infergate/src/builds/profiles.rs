//! Cargo's profiles and settings in two checkouts: others make another program of the same source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use infergate_core::printable::first_of;
use toml::{Table, Value};

use super::cargo_settings;
use super::git::git;
use super::swap::table;

/// As many keys are named; the others are counted.
const NAMED: usize = 8;

/// Cargo refuses a circle, and is asked later.
const MOST_PARENTS: usize = 16;

/// The tables of `.cargo/config.toml` that choose how a program is compiled.
const COMPILING: [&str; 4] = ["build", "profile", "target", "unstable"];

/// How the profiles that a bench is built with and cargo's settings differ, by the manifest at the root of each workspace and the
/// settings beside it; `None` where they do not, or cargo could not read one either.
pub fn difference(base: &Path, head: &Path, profile: Option<&str>) -> Option<String> {
    let (was, is) = (table(base).ok()?, table(head).ok()?);
    let all = |manifest: &Table| {
        let own = |name: &str| manifest.get("profile")?.get(name);
        // Cargo's profile for benches has that for releases as its parent.
        let parent = |name: &String| match own(name).and_then(|own| own.get("inherits")?.as_str()) {
            None => (name == "bench").then(|| "release".to_owned()),
            parent => parent.map(str::to_owned),
        };
        let names = std::iter::successors(Some(profile.unwrap_or("bench").to_owned()), parent).take(MOST_PARENTS);
        let mut keys = BTreeMap::new();
        for (name, own) in names.filter_map(|name| Some((format!("profile.{name}"), own(&name)?))) {
            flatten(&name, own, &mut keys);
        }
        keys
    };
    let (was, is) = (all(&was), all(&is));
    let (was, is) = (with_settings(was, base), with_settings(is, head));
    let mut keys: Vec<&String> = was.keys().chain(is.keys()).filter(|key| was.get(*key) != is.get(*key)).collect();
    keys.sort_unstable();
    keys.dedup();
    let value = |values: &BTreeMap<String, String>, key| values.get(key).map_or("not set", String::as_str).to_owned();
    let said: Vec<String> = keys
        .into_iter()
        .map(|key| format!("{key} is {} in head, {} in base", value(&is, key), value(&was, key)))
        .collect();
    (!said.is_empty()).then(|| format!("cargo's settings differ: {}", first_of(&said, NAMED, "; ")))
}

/// Keys of `build` that change no program.
const OF_NO_PROGRAM: [&str; 6] = ["build-dir", "dep-info-basedir", "jobs", "rustdoc", "rustdocflags", "target-dir"];

/// Settings that a checkout cannot have.
pub struct LeftBehind {
    /// In a sentence.
    pub text: String,
    /// They make another program, and not only variables that one may read.
    pub compile: bool,
}

/// Settings for how cargo compiles in `here`, a folder of `repository`, that do not hold in `checkout`, the same folder of the checkout
/// `files`, and never will: git ignores their file, or it lies above the repository.
pub fn left_behind(here: &Path, repository: &Path, checkout: &Path, files: &Path) -> Option<LeftBehind> {
    // A home folder can be a link, and the checkouts lie there.
    let whole = |place: PathBuf| place.canonicalize().unwrap_or(place);
    let there: Vec<PathBuf> = cargo_settings::all(checkout).map(|(place, _)| whole(place)).collect();
    let is_ignored = |place: &Path| {
        let names = [".cargo/config", ".cargo/config.toml"];
        names.iter().any(|name| git(place, &["check-ignore", "--quiet", name]).is_ok())
    };
    let is_left = |place: &PathBuf| {
        let below = place.strip_prefix(repository).ok();
        let is_there = below.is_some_and(|below| there.contains(&whole(files.join(below))))
            || there.contains(&whole(place.clone()));
        !is_there && (below.is_none() || is_ignored(place))
    };
    let compiles = |settings: &Table| {
        COMPILING.iter().any(|name| {
            let values = settings.get(*name).and_then(Value::as_table).into_iter().flatten();
            values.map(|(key, _)| key.as_str()).any(|key| *name != "build" || !OF_NO_PROGRAM.contains(&key))
        })
    };
    let tells = |settings: &Table| compiles(settings) || settings.contains_key("env");
    let all = cargo_settings::all(here).filter(|(place, settings)| tells(settings) && is_left(place));
    // What compiles first: the sort keeps what lies nearer before the rest.
    let mut all: Vec<(PathBuf, Table)> = all.collect();
    all.sort_by_key(|(_, settings)| !compiles(settings));
    let (place, settings) = all.into_iter().next()?;
    let mend = if place == here {
        "; let carry = [\".cargo/config.toml\"] below [bench] in infergate.toml bring it"
    } else {
        "; commit them in the repository, or put them into cargo's home folder"
    };
    let text = format!(
        "a .cargo/config.toml {} has settings for how cargo compiles that do not hold in the gate's checkouts{mend}",
        if place.starts_with(repository) { "that git ignores" } else { "above the repository" }
    );
    Some(LeftBehind { text, compile: compiles(&settings) })
}

/// `keys` of a manifest, and those of the settings beside it.
fn with_settings(mut keys: BTreeMap<String, String>, manifest: &Path) -> BTreeMap<String, String> {
    let place = manifest.with_file_name(".cargo");
    let file = ["config", "config.toml"].map(|name| place.join(name)).into_iter().find(|file| file.is_file());
    let settings = file.and_then(|file| table(&file).ok()).unwrap_or_default();
    for (name, values) in COMPILING.iter().filter_map(|name| Some((name, settings.get(*name)?))) {
        flatten(&format!(".cargo/config.toml's {name}"), values, &mut keys);
    }
    keys
}

fn flatten(name: &str, value: &Value, keys: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, keys)),
        value => {
            keys.insert(name.to_owned(), value.to_string());
        }
    }
}
