//! Benches of plain criterion or divan, as they are: in a checkout of ours the dependency becomes infergate's front of that name,
//! so that the executable is a worker. Nothing in the repository itself is changed.
//!
//! A dependency is renamed in the manifests and not patched for all packages: infergate's front needs criterion itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::manifest::{MAX_FILE_BYTES, dependency_sections, table};
use super::workspace::{CODSPEED, CRITERION, Package, REPLACEMENTS, Workspace, replacement};
use super::{checkout_folder, lock_file, toolchain};
use crate::workspace::BenchTarget;
use infergate_core::text_file::read_text;

/// The front's feature that takes profilers of other versions of criterion, which a worker leaves alone anyway.
const ANY_PROFILER: &str = "any_profiler";

/// The front builds with Rust 1.85 and newer.
const OLDEST_RUST: u32 = 85;

/// Keys of a dependency that say where it comes from.
const PLACE: [&str; 9] = ["version", "path", "git", "branch", "tag", "rev", "registry", "registry-index", "package"];

/// The feature of a bench target's dependency that counts its heap. `None` if criterion is not replaced.
///
/// # Errors
/// As [`Workspace::load`].
pub fn counting_feature(target: &BenchTarget, folder: &Path) -> Result<Option<String>> {
    let workspace = Workspace::load(folder)?;
    let packages = workspace.with_bench(target);
    let mut dependencies = packages.iter().flat_map(|package| &package.dependencies);
    let front = dependencies.find(|dependency| dependency.name == CRITERION);
    let name = front.map(|front| front.rename.as_ref().unwrap_or(&front.name));
    Ok(name.map(|name| format!("{name}/counting")))
}

/// Replaces criterion and divan in every manifest of the checkout `files` that has the workspace. All other versions stay as its Cargo.lock
/// has them.
///
/// # Errors
/// A manifest that cannot be read or written; what cargo cannot resolve.
pub fn put(files: &Path, folder: &Path, workspace: &Workspace) -> Result<()> {
    if !workspace.lock_file().is_file() {
        // What cargo takes for the repository's users. The criterion that other packages take, such as a profiler, has to be the front's.
        Workspace::load_with_dependencies(folder)?;
    }
    let paths = workspace.manifests();
    let tables = paths.iter().map(|manifest| table(manifest)).collect::<Result<Vec<_>>>()?;
    let shared = tables.iter().find_map(|table| table.get("workspace")?.get("dependencies")?.as_table().cloned());
    for (manifest, mut table) in paths.iter().zip(tables) {
        let own = workspace.packages.iter().find(|package| package.manifest_path == *manifest);
        let before = table.clone();
        rename(&mut table, shared.as_ref(), own.is_some_and(is_of_codspeed));
        // A build script can run again for each file that is newer.
        if table != before {
            checkout_folder::write(files, manifest, &table.to_string())?;
        }
    }
    lock_file::resolve(folder, "").with_context(|| {
        let why = if toolchain::is_older_than(OLDEST_RUST, folder) {
            format!(", which needs Rust 1.{OLDEST_RUST} or newer")
        } else {
            String::new()
        };
        format!("criterion cannot be replaced by infergate's front{why}")
    })
}

/// Whether the benches of a package name CodSpeed's criterion and never criterion itself.
fn is_of_codspeed(package: &Package) -> bool {
    let texts = package.benches().filter_map(|bench| read_text(&bench.src_path, MAX_FILE_BYTES).ok());
    let text: String = texts.collect();
    text.contains("codspeed_criterion_compat")
        && !["criterion::", "crate criterion"].iter().any(|name| text.contains(name))
}

fn package_of(name: &str, value: &Toml) -> String {
    value.get("package").and_then(Toml::as_str).unwrap_or(name).to_owned()
}

/// The front takes the place of what it stands for. `shared` are the dependencies that the workspace's root has for its members: there
/// all are replaced, since each member takes its own.
fn rename(manifest: &mut Table, shared: Option<&Table>, is_of_codspeed: bool) {
    let mut fronts = REPLACEMENTS;
    fronts.sort_by_key(|(name, _)| is_of_codspeed && *name != CODSPEED);
    let mut of_members = manifest.get_mut("workspace").and_then(|own| own.as_table_mut()?.remove("dependencies"));
    for (name, value) in of_members.iter_mut().filter_map(Toml::as_table_mut).flatten() {
        if let Some(front) = replacement(&package_of(name, value)) {
            *value = in_place(front, value);
        }
    }
    let mut sections = dependency_sections(manifest);
    let inherited = |name: &str, value: &Toml| shared?.get(name).filter(|_| value.get("workspace").is_some()).cloned();
    let package = |name: &str, value: &Toml| package_of(name, inherited(name, value).as_ref().unwrap_or(value));
    let all = sections.iter().flat_map(|section| section.iter());
    let own: BTreeSet<String> = all.map(|(name, value)| package(name, value)).collect();
    for (name, value) in sections.iter_mut().flat_map(|section| section.iter_mut()) {
        let package = package(name, value);
        let Some(front) = replacement(&package) else { continue };
        // Cargo takes no package under two names: only the first of those that a manifest has is replaced.
        let mut before = fronts.iter().take_while(|(before, _)| *before != package);
        let is_second = before.any(|(other, of)| *of == front && own.contains(*other));
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
    if front == CRITERION {
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
