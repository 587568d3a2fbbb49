//! Cargo's profiles and settings in two checkouts: others make another program of the same source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use infergate_core::printable::first_of;
use toml::{Table, Value};

use super::cargo_settings;
use super::git::git;
use super::manifest::table;
use super::workspace::Workspace;

/// As many keys are named; the others are counted.
const NAMED: usize = 8;

/// The profile of `cargo bench`.
pub const OF_BENCHES: &str = "bench";

/// Cargo refuses a circle, and is asked later.
const MOST_PARENTS: usize = 16;

/// What of `.cargo/config.toml` chooses how a program is compiled, and of which packages.
const COMPILING: [&str; 6] = ["build", "patch", "paths", "profile", "target", "unstable"];

/// Keys of `build` and of a target that change no program.
const OF_NO_PROGRAM: [&str; 9] = [
    "build-dir",
    "dep-info-basedir",
    "jobs",
    "runner",
    "rustc-workspace-wrapper",
    "rustc-wrapper",
    "rustdoc",
    "rustdocflags",
    "target-dir",
];

/// How the profiles that a bench is built with and cargo's settings differ, by the manifest at the root of each workspace and the
/// settings beside it; `None` where they do not, or cargo could not read one either.
pub fn difference(base: &Path, head: &Path, profile: Option<&str>) -> Option<String> {
    let all = |manifest: &Path| {
        let (own, settings) = (table(manifest).ok()?, beside(manifest));
        let names = with_parents(profile.unwrap_or(OF_BENCHES), &[&settings, &own]);
        let mut keys = BTreeMap::new();
        for (name, own) in names.iter().filter_map(|name| Some((name, own.get("profile")?.get(name)?))) {
            flatten(&format!("profile.{name}"), own, &mut keys);
        }
        let settings = compiling(&settings, &names).into_iter();
        keys.extend(settings.map(|(key, value)| (format!(".cargo/config.toml's {key}"), value)));
        Some(keys)
    };
    let (was, is) = (all(base)?, all(head)?);
    let mut keys: Vec<&String> = was.keys().chain(is.keys()).filter(|key| was.get(*key) != is.get(*key)).collect();
    keys.sort_unstable();
    keys.dedup();
    let value = |values: &BTreeMap<String, String>, key| values.get(key).map_or("not set", String::as_str).to_owned();
    let different: Vec<String> = keys
        .into_iter()
        .map(|key| format!("{key} is {} in head, {} in base", value(&is, key), value(&was, key)))
        .collect();
    (!different.is_empty()).then(|| format!("cargo's settings differ: {}", first_of(&different, NAMED, "; ")))
}

/// A profile and its parents, by what can name them.
fn with_parents(profile: &str, tables: &[&Table]) -> Vec<String> {
    let inherits =
        |name: &str| tables.iter().find_map(|table| table.get("profile")?.get(name)?.get("inherits")?.as_str());
    // Cargo's profile for benches has that for releases as its parent.
    let parent = |name: &String| match inherits(name) {
        None => (name == OF_BENCHES).then(|| "release".to_owned()),
        parent => parent.map(str::to_owned),
    };
    std::iter::successors(Some(profile.to_owned()), parent).take(MOST_PARENTS).collect()
}

/// Settings that a checkout cannot have.
pub struct LeftBehind {
    /// In a sentence.
    pub text: String,
    /// They make another program, and not only variables that one may read.
    pub compile: bool,
}

/// Settings for how cargo compiles by `profile` in `here`, a folder of `repository`, that do not hold in `checkout`, the same folder of the
/// checkout `files`, and never will: git ignores their file, or it lies above the repository.
pub fn left_behind(here: &Path, repository: &Path, checkout: &Path, files: &Path, profile: &str) -> Option<LeftBehind> {
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
    let manifest = Workspace::load(here).and_then(|workspace| table(&workspace.manifest())).unwrap_or_default();
    let mut all: Vec<(PathBuf, Table)> = cargo_settings::all(here).collect();
    let tables: Vec<&Table> = all.iter().map(|(_, settings)| settings).chain([&manifest]).collect();
    let profiles = with_parents(profile, &tables);
    let compiles = |settings: &Table| !compiling(settings, &profiles).is_empty();
    all.retain(|(place, settings)| (compiles(settings) || settings.contains_key("env")) && is_left(place));
    // What compiles first: the sort keeps what lies nearer before the rest.
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

/// The settings beside a manifest.
fn beside(manifest: &Path) -> Table {
    cargo_settings::file(&manifest.with_file_name(".cargo")).and_then(|file| table(&file).ok()).unwrap_or_default()
}

/// The keys of cargo's settings that choose how a program of these profiles is compiled.
fn compiling(settings: &Table, profiles: &[String]) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    for (name, values) in COMPILING.iter().filter_map(|name| Some((*name, settings.get(*name)?))) {
        flatten(name, values, &mut keys);
    }
    let of = |rest: &str, profile: &String| rest.strip_prefix(profile).is_some_and(|rest| rest.starts_with('.'));
    keys.retain(|key, _| match key.split_once('.') {
        Some(("build" | "target", rest)) => !OF_NO_PROGRAM.contains(&rest.rsplit('.').next().unwrap_or_default()),
        Some(("profile", rest)) => profiles.iter().any(|profile| of(rest, profile)),
        _ => true,
    });
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_settings_that_make_another_program_compile() {
        let (here, checkout) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let (here, checkout) = (here.path(), checkout.path());
        git(here, &["init", "--quiet"]).expect("a repository");
        fs::write(here.join(".gitignore"), ".cargo\n").expect("a file");
        let manifest = "[package]\nname = 'a'\n[lib]\npath = 'a.rs'\n[profile.own]\ninherits = 'between'\n[profile.between]\ninherits = 'bench'\n";
        fs::write(here.join("Cargo.toml"), manifest).expect("a file");
        fs::write(here.join("a.rs"), "").expect("a file");
        fs::create_dir(here.join(".cargo")).expect("a folder");
        let compiles = |settings: &str, profile: &str| {
            fs::write(here.join(".cargo/config.toml"), settings).expect("a file");
            left_behind(here, here, checkout, checkout, profile).map(|left| left.compile)
        };
        for settings in [
            "[build]\nrustc-wrapper = 'a'\nrustc-workspace-wrapper = 'b'\njobs = 1\n",
            "[target.x86_64-unknown-linux-gnu]\nrunner = 'a'\n[target.'cfg(unix)']\nrunner = ['a']\n",
            "[profile.dev]\nopt-level = 1\n[profile.releases]\nopt-level = 1\n",
            "[term]\nquiet = false\n",
        ] {
            assert_eq!(compiles(settings, "bench"), None, "{settings}");
        }
        for settings in [
            "[patch.crates-io]\na = { path = 'a' }\n",
            "paths = ['a']\n",
            "[build]\nrustflags = ['-Cdebuginfo=1']\n",
            "[target.'cfg(unix)']\nlinker = 'a'\n",
            "[profile.release]\nopt-level = 1\n",
            "[profile.bench]\ninherits = 'dev'\n",
        ] {
            assert_eq!(compiles(settings, "bench"), Some(true), "{settings}");
        }
        assert_eq!(compiles("[env]\nA = '1'\n", "bench"), Some(false));
        let release = "[profile.release.package.a]\nopt-level = 1\n";
        assert_eq!([compiles(release, "own"), compiles(release, "dev")], [Some(true), None]);
    }
}
