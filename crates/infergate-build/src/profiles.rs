//! Differences in profiles and cargo settings, which change the program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::cargo_settings;
use super::checkout_folder::real;
use super::git::git;
use super::lock_file::differences;
use super::manifest::table;

/// Tables of `.cargo/config.toml` that choose how a program is compiled, and of which packages.
const COMPILING: [&str; 6] = ["build", "patch", "paths", "profile", "target", "unstable"];

/// Keys of `build` and of a target that change no program.
const IGNORED_KEYS: [&str; 9] = [
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

/// Profiles that nothing is measured in.
const UNMEASURED: [&str; 2] = ["dev", "test"];

/// How profiles and cargo's settings differ, by the manifest at the root of each workspace and the settings in its folder; `None` if they
/// do not, or if cargo could not read one either.
pub fn difference(base: &Path, head: &Path) -> Option<String> {
    let all = |manifest: &Path| {
        let mut own = table(manifest).ok()?;
        own.retain(|key, _| key == "profile");
        let settings = cargo_settings::file(&manifest.with_file_name(".cargo"))
            .and_then(|file| table(&file).ok())
            .unwrap_or_default();
        let settings = compiling(&settings).into_iter();
        let mut keys = compiling(&own);
        keys.extend(settings.map(|(key, value)| (format!(".cargo/config.toml's {key}"), value)));
        Some(keys)
    };
    let different = differences(&all(base)?, &all(head)?, " is", "not set")?;
    Some(format!("cargo's settings differ: {different}"))
}

/// The message about settings that a checkout cannot have.
pub const SETTINGS_NOT_IN_CHECKOUT: &str = "cargo's settings that git ignores, or above the repository, hold in no \
                                            checkout; commit them, or name their file in [bench] carry";

/// Whether settings in `here`, a folder of `repository`, do not hold in `checkout`, the same folder of the checkout `files`, and never
/// will: git ignores their file, or it lies above the repository. `Some(true)`: they make another program; `Some(false)`: they only set
/// variables that one may read.
pub fn not_in_checkout(here: &Path, repository: &Path, checkout: &Path, files: &Path) -> Option<bool> {
    // A home folder can be a link, and the checkouts lie there.
    let there: Vec<PathBuf> = cargo_settings::all(checkout).map(|(place, _)| real(&place)).collect();
    let is_ignored = |place: &Path| git(place, &["check-ignore", ".cargo/config", ".cargo/config.toml"]).is_ok();
    let is_not_in_checkout = |place: &Path| match place.strip_prefix(repository) {
        Ok(below) => !there.contains(&real(&files.join(below))) && is_ignored(place),
        Err(_) => !there.contains(&real(place)),
    };
    let compiles = |settings: &Table| !compiling(settings).is_empty();
    let all = cargo_settings::all(here).filter(|(place, _)| is_not_in_checkout(place));
    let all = all.filter(|(_, settings)| compiles(settings) || settings.contains_key("env"));
    all.map(|(_, settings)| compiles(&settings)).max()
}

/// The keys of cargo's settings that choose how a program that is measured is compiled.
fn compiling(settings: &Table) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    for (name, values) in COMPILING.iter().filter_map(|name| Some((*name, settings.get(*name)?))) {
        flatten(name, values, &mut keys);
    }
    keys.retain(|key, _| match key.split('.').collect::<Vec<_>>()[..] {
        ["build" | "target", .., last] => !IGNORED_KEYS.contains(&last),
        ["profile", name, ..] => !UNMEASURED.contains(&name),
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
        fs::create_dir(here.join(".cargo")).expect("a folder");
        let compiles = |settings: &str| {
            fs::write(here.join(".cargo/config.toml"), settings).expect("a file");
            not_in_checkout(here, here, checkout, checkout)
        };
        for settings in [
            "[build]\nrustc-wrapper = 'a'\nrustc-workspace-wrapper = 'b'\njobs = 1\n",
            "[target.x86_64-unknown-linux-gnu]\nrunner = 'a'\n[target.'cfg(unix)']\nrunner = ['a']\n",
            "[profile.dev]\nopt-level = 1\n[profile.test.package.a]\nopt-level = 1\n",
            "[term]\nquiet = false\n",
        ] {
            assert_eq!(compiles(settings), None, "{settings}");
        }
        for settings in [
            "[patch.crates-io]\na = { path = 'a' }\n",
            "paths = ['a']\n",
            "[build]\nrustflags = ['-Cdebuginfo=1']\n",
            "[target.'cfg(unix)']\nlinker = 'a'\n",
            "[profile.release]\nopt-level = 1\n",
            "[profile.bench]\ninherits = 'dev'\n",
        ] {
            assert_eq!(compiles(settings), Some(true), "{settings}");
        }
        assert_eq!(compiles("[env]\nA = '1'\n"), Some(false));
    }
}
