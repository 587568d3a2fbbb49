//! Benches of plain criterion or divan, as they are: in a checkout of ours the dependency becomes infergate's front of that name,
//! so that the executable is a worker. Nothing in the repository itself is changed.
//!
//! A dependency is renamed in the manifests and not patched for all packages: infergate's front needs criterion itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::frameworks::{
    CODSPEED, DIVAN, FRONTS, PACKAGE, front, is_of_codspeed, source, takes_criterion, takes_infergate,
};
use super::manifest::{dependency_sections, table};
use super::swap::{manifests, resolve, write};
use super::{lock_file, toolchain, workspace};
use crate::wanted::BenchTarget;

/// The front's feature that takes profilers of other versions of criterion, which a worker leaves alone anyway.
const ANY_PROFILER: &str = "any_profiler";

/// The front builds with Rust 1.85 and newer.
const OLDEST_RUST: u32 = 85;

/// Keys of a dependency that say where it comes from.
const PLACE: [&str; 9] = ["version", "path", "git", "branch", "tag", "rev", "registry", "registry-index", "package"];

/// Whether the bench target in `folder` is one of plain criterion: it cannot be a worker before it has the front.
///
/// # Errors
/// When cargo does not start.
pub fn is_plain(target: &BenchTarget, folder: &Path) -> Result<bool> {
    let packages = workspace::of_bench(target, folder)?;
    Ok(packages.iter().any(|package| {
        let names_infergate = || source(package, &target.target).is_some_and(|text| text.contains("infergate"));
        takes_criterion(package) && !(takes_infergate(package) && names_infergate())
    }))
}

/// The feature of a bench target's dependency that counts its heap. `None` where it takes criterion from somewhere else than the front.
///
/// # Errors
/// When cargo does not start.
pub fn counting(target: &BenchTarget, folder: &Path) -> Result<Option<String>> {
    let packages = workspace::of_bench(target, folder)?;
    let mut dependencies = packages.iter().flat_map(|package| &package.dependencies);
    let front = dependencies.find(|dependency| dependency.name == PACKAGE);
    let name = front.map(|front| front.rename.as_ref().unwrap_or(&front.name));
    Ok(name.map(|name| format!("{name}/counting")))
}

/// Puts the front into the checkout around `folder`, in every manifest of its workspace. All other versions stay as its Cargo.lock
/// has them.
///
/// # Errors
/// A manifest that cannot be read or written; what cargo cannot resolve.
pub fn put(folder: &Path) -> Result<()> {
    let lock = lock_file::around(folder)?;
    if !lock.is_file() {
        // What cargo takes for the repository's users. The criterion that other packages take, such as a profiler, has to be the front's.
        workspace::all_dependencies(folder)?;
    }
    let paths = manifests(folder, &lock)?;
    let packages = workspace::packages(folder)?.unwrap_or_default();
    let tables = paths.iter().map(|manifest| table(manifest)).collect::<Result<Vec<_>>>()?;
    let shared = tables.iter().find_map(|table| table.get("workspace")?.get("dependencies")?.as_table().cloned());
    let mut written = Vec::new();
    for (manifest, mut table) in paths.iter().zip(tables) {
        let before = table.clone();
        let own = packages.iter().find(|package| package.manifest_path == *manifest);
        rename(&mut table, shared.as_ref(), own.is_some_and(is_of_codspeed));
        if table != before {
            write(folder, manifest, &table)?;
            written.push((manifest, before));
        }
    }
    let resolved = resolve(folder, "").or_else(|error| {
        // The next bench target would be taken for one that has the front, and nobody would say why it does not build.
        written.iter().try_for_each(|(manifest, before)| write(folder, manifest, before))?;
        Err(error)
    });
    resolved.with_context(|| {
        let why = if toolchain::is_older_than(OLDEST_RUST, folder) {
            format!(", which needs Rust 1.{OLDEST_RUST} or newer")
        } else {
            String::new()
        };
        format!("criterion cannot be replaced by infergate's front{why}")
    })
}

fn package_of(name: &str, value: &Toml) -> String {
    value.get("package").and_then(Toml::as_str).unwrap_or(name).to_owned()
}

/// The front takes the place of what it stands for. `shared` are the dependencies that the workspace's root has for its members: there
/// all are replaced, since each member takes its own.
fn rename(manifest: &mut Table, shared: Option<&Table>, is_of_codspeed: bool) {
    let mut fronts = FRONTS;
    fronts.sort_by_key(|(name, _)| is_of_codspeed && *name != CODSPEED);
    let mut of_members = manifest.get_mut("workspace").and_then(|own| own.as_table_mut()?.remove("dependencies"));
    for (name, value) in of_members.iter_mut().filter_map(Toml::as_table_mut).flatten() {
        if let Some(front) = front(&package_of(name, value)) {
            *value = in_place(front, value);
        }
    }
    let mut sections = dependency_sections(manifest);
    let inherited = |name: &str, value: &Toml| shared?.get(name).filter(|_| value.get("workspace").is_some()).cloned();
    let package = |name: &str, value: &Toml| package_of(name, inherited(name, value).as_ref().unwrap_or(value));
    let all = sections.iter().flat_map(|section| section.iter());
    // A front that the repository has itself took the place of nothing.
    let counts = |name: &str, value: &Toml| {
        let front = [PACKAGE, DIVAN].into_iter().find(|front| package(name, value) == *front);
        front.is_none_or(|front| is_in_place(front, inherited(name, value).as_ref().unwrap_or(value)))
    };
    let own: BTreeSet<String> =
        all.filter(|(name, value)| counts(name, value)).map(|(name, value)| package(name, value)).collect();
    for (name, value) in sections.iter_mut().flat_map(|section| section.iter_mut()) {
        let package = package(name, value);
        let Some(front) = front(&package) else { continue };
        // Cargo takes no package under two names. Beside criterion itself stays what takes its place where a feature says so, and
        // beside CodSpeed's criterion itself where no bench names that. An earlier bench target can have brought the front.
        let mut before = fronts.iter().take_while(|(before, _)| *before != package);
        let is_second = own.contains(front) || before.any(|(other, of)| *of == front && own.contains(*other));
        match inherited(name, value) {
            Some(theirs) if is_second => *value = with_keys_of(value, theirs),
            None if !is_second => *value = in_place(front, value),
            _ => {}
        }
    }
    if let (Some(of_members), Some(workspace)) =
        (of_members, manifest.get_mut("workspace").and_then(Toml::as_table_mut))
    {
        workspace.insert("dependencies".into(), of_members);
    }
}

/// A member's dependency with what it inherited written out.
fn with_keys_of(own: &Toml, theirs: Toml) -> Toml {
    let mut keys = match theirs {
        Toml::Table(keys) => keys,
        version => Table::from_iter([("version".to_owned(), version)]),
    };
    let own = own.as_table().into_iter().flatten().filter(|(key, _)| *key != "workspace");
    keys.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    Toml::Table(keys)
}

/// A dependency of which the front takes the place.
fn in_place(front: &str, value: &Toml) -> Toml {
    let mut dependency = value.as_table().cloned().unwrap_or_default();
    PLACE.iter().for_each(|key| drop(dependency.remove(*key)));
    dependency.insert("package".into(), Toml::from(front));
    dependency.extend(place(front).into_iter().map(|(key, value)| (key.to_owned(), Toml::from(value))));
    if front == PACKAGE {
        let features = dependency.entry("features").or_insert_with(|| Toml::Array(Vec::new()));
        if let Some(features) = features.as_array_mut() {
            features.push(Toml::from(ANY_PROFILER));
        }
    }
    Toml::Table(dependency)
}

/// Where the front comes from. Of a command that came as a file alone: of the commit that it was built from, or of its release.
fn place(front: &str) -> Vec<(&'static str, String)> {
    match (own_folder(front), option_env!("INFERGATE_COMMIT")) {
        (Some(folder), _) => vec![("path", folder.to_string_lossy().into_owned())],
        (None, Some(commit)) => vec![("git", env!("CARGO_PKG_REPOSITORY").to_owned()), ("rev", commit.to_owned())],
        (None, None) => vec![("version", concat!("=", env!("CARGO_PKG_VERSION")).to_owned())],
    }
}

/// Whether a dependency on the front is one that took something's place.
fn is_in_place(front: &str, value: &Toml) -> bool {
    place(front).iter().all(|(key, text)| value.get(key).and_then(Toml::as_str) == Some(text.as_str()))
}

/// The front among the sources that this command was built from, where they are still there.
fn own_folder(front: &str) -> Option<PathBuf> {
    own_source().map(|root| root.join("crates").join(front)).filter(|folder| folder.join("Cargo.toml").is_file())
}

/// The folder of infergate's sources that this command was built from, where it is still there.
pub fn own_source() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
    let manifest = fs::read_to_string(root.join("Cargo.toml")).ok()?;
    manifest.contains("name = \"infergate\"").then(|| root.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each name is afterwards, of a manifest that is renamed as often as it has bench targets.
    fn renamed(dependencies: &str, times: usize) -> Vec<(String, String)> {
        let mut manifest: Table = format!("[dev-dependencies]\n{dependencies}").parse().expect("TOML");
        (0..times).for_each(|_| rename(&mut manifest, None, false));
        let sections = dependency_sections(&mut manifest);
        let all = sections.iter().flat_map(|section| section.iter());
        all.map(|(name, value)| (name.clone(), package_of(name, value))).collect()
    }

    #[test]
    fn a_front_of_the_repository_itself_keeps_none_from_its_place() {
        let named = |name: &str, package: &str| (name.to_owned(), package.to_owned());
        for times in [1, 2] {
            let own = renamed("criterion = '0.5'\ninfergate-criterion = { version = '0.0.1' }\n", times);
            assert_eq!(own, [named("criterion", PACKAGE), named(PACKAGE, PACKAGE)]);
        }
    }
}
