//! Cargo's settings, `.cargo/config.toml`, as far as they concern a bench.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use toml::{Table, Value};

use super::manifest::table;

/// Files that cargo and rustup obey in a folder and in those above it.
const OBEYED: [&str; 6] =
    [".cargo", ".cargo/config", ".cargo/config.toml", "rust-toolchain", "rust-toolchain.toml", "Cargo.toml"];

/// Refuses a `folder` where cargo would obey another user: not this one, root, or the owner of `repository`.
///
/// # Errors
/// A file of another user; a repository that does not exist.
pub fn ensure_own(folder: &Path, repository: &Path) -> Result<()> {
    match foreign(folder, &owners(repository)?) {
        Some(file) => anyhow::bail!("{}: belongs to another user, and cargo would obey it; remove it", file.display()),
        None => Ok(()),
    }
}

/// The users who may decide what is run here: root, this user, and the owner of `place`.
///
/// # Errors
/// A place that does not exist.
pub fn owners(place: &Path) -> Result<[u32; 3]> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    Ok([0, user, std::fs::metadata(place)?.uid()])
}

/// A file that cargo would obey in `folder` and that has another owner than `own`.
fn foreign(folder: &Path, own: &[u32]) -> Option<PathBuf> {
    // Cargo goes up from where a link leads.
    let folder = super::checkout_folder::real(folder);
    let mut obeyed = folder.ancestors().flat_map(|above| OBEYED.map(|name| above.join(name)));
    obeyed.find(|file| file.symlink_metadata().is_ok_and(|found| !own.contains(&found.uid())))
}

/// The settings that hold for cargo in `folder`, nearest first, each with the folder that its paths are relative to. A file that is no TOML
/// is skipped: cargo reports it when it builds.
pub fn all(folder: &Path) -> impl Iterator<Item = (PathBuf, Table)> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let above: Vec<PathBuf> = folder.ancestors().map(|above| above.join(".cargo")).collect();
    let home = env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    above.into_iter().chain(home).filter_map(|place| {
        let file = file(&place)?;
        Some((place.parent()?.to_owned(), table(&file).ok()?))
    })
}

/// The file of a folder `.cargo`.
pub fn file(place: &Path) -> Option<PathBuf> {
    ["config", "config.toml"].map(|name| place.join(name)).into_iter().find(|file| file.is_file())
}

/// Sets cargo's build folder to `folder`, below `place`, so that both sides cannot share one: a program of one would be taken for the
/// other's. Not if `place` has braces, in which cargo expects the name of a variable.
pub fn keep_build_folder(cargo: &mut Command, place: &Path, folder: impl AsRef<OsStr>) {
    if !place.to_string_lossy().contains(['{', '}']) {
        cargo.env("CARGO_BUILD_BUILD_DIR", folder);
    }
}

/// The wrapper that cargo, run in `folder`, starts in place of the compiler.
pub fn rustc_wrapper(folder: &Path) -> Option<OsString> {
    let here = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let variables = ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"].into_iter().filter_map(env::var_os);
    let settings = all(folder).filter_map(|(place, settings)| {
        Some((place, OsString::from(settings.get("build")?.get("rustc-wrapper")?.as_str()?)))
    });
    let mut found = variables.map(|wrapper| (here.clone(), wrapper)).chain(settings);
    let (place, wrapper) = found.next().filter(|(_, wrapper)| !wrapper.is_empty())?;
    // Cargo starts the compiler in other folders, too.
    Some(if wrapper.to_string_lossy().contains('/') { place.join(wrapper).into() } else { wrapper })
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::foreign;

    #[test]
    fn what_cargo_would_obey_above_a_folder_has_a_known_owner() {
        let place = tempfile::tempdir().expect("a folder");
        let above = place.path().canonicalize().expect("a folder");
        let folder = above.join("base/tree");
        fs::create_dir_all(&folder).expect("a folder");
        let found = |own: &[u32]| foreign(&folder, own).filter(|file| file.starts_with(&above));
        assert_eq!(found(&[]), None);
        // A link that leads nowhere may lead somewhere later.
        for name in ["Cargo.toml", "base/rust-toolchain", "base/.cargo"] {
            let file = above.join(name);
            symlink("nowhere", &file).expect("a link");
            assert_eq!(found(&[]), Some(file.clone()), "nobody is known");
            assert_eq!(found(&[file.symlink_metadata().expect("a link").uid()]), None);
            fs::remove_file(&file).expect("a link");
        }
    }
}
