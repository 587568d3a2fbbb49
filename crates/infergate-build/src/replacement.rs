//! Benches of plain criterion or divan, as they are: in a checkout of ours the dependency becomes infergate's front of that name,
//! so that the executable is a worker. Nothing in the repository itself is changed.
//!
//! A dependency is renamed in the manifests and not patched for all packages: infergate's front needs criterion itself.

use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::manifest::{MAX_FILE_BYTES, dependency_sections, edit};
use super::origin::origin;
use super::workspace::{CODSPEED, CRITERION, Dependency, Package, REPLACEMENTS, Workspace, replacement};
use super::{lock_file, run_captured, toolchain};
use crate::workspace::BenchTarget;
use infergate_core::text_file::read_text;

/// The feature of a bench target's dependency that counts its heap. `None` if criterion is not replaced.
///
/// # Errors
/// As [`Workspace::load`].
pub fn counting_feature(target: &BenchTarget, folder: &Path) -> Result<Option<String>> {
    let workspace = Workspace::load(folder)?;
    let packages = workspace.with_bench(target);
    let mut dependencies = packages.iter().flat_map(|package| &package.dependencies);
    let front = dependencies.find(|dependency| dependency.name == CRITERION);
    Ok(front.map(|front| format!("{}/counting", front.key())))
}

/// Replaces criterion and divan in every manifest of the checkout `files` that has the workspace. All other versions stay as its Cargo.lock
/// has them.
///
/// # Errors
/// A manifest that cannot be read or written; what cargo cannot resolve.
pub fn replace_in_manifests(files: &Path, folder: &Path, workspace: &Workspace) -> Result<()> {
    if !workspace.lock_file().is_file() {
        // What cargo takes for the repository's users. The criterion that other packages take, such as a profiler, has to be the front's.
        let mut cargo = toolchain::cargo_in(folder);
        cargo.arg("generate-lockfile");
        run_captured::cargo(cargo)?;
    }
    for package in &workspace.packages {
        edit(files, &package.manifest_path, |manifest| rename(manifest, package))?;
    }
    lock_file::resolve(folder).context("infergate (Rust 1.85 or newer) cannot take the place of criterion or divan")
}

/// The front takes the place of what it stands for. What a member inherits from its workspace is written out.
fn rename(manifest: &mut Table, package: &Package) -> Result<()> {
    let mut fronts = REPLACEMENTS;
    // Whether its benches name CodSpeed's criterion and never criterion itself.
    let texts = package.benches().filter_map(|bench| read_text(&bench.src_path, MAX_FILE_BYTES).ok());
    let text: String = texts.collect();
    let is_of_codspeed = text.contains("codspeed_criterion_compat")
        && !["criterion::", "crate criterion"].iter().any(|name| text.contains(name));
    fronts.sort_by_key(|(name, _)| is_of_codspeed && *name != CODSPEED);
    let has = |name: &str| package.dependencies.iter().any(|dependency| dependency.name == name);
    // Cargo takes no package under two names: only the first of those that a manifest has is replaced.
    let is_first = |name: &str, front: &str| {
        let first = fronts.iter().find(|(other, of)| *of == front && has(other));
        first.is_some_and(|(first, _)| *first == name)
    };
    // Other members take the workspace's own list.
    let shared = manifest.remove("workspace");
    for (key, value) in dependency_sections(manifest).into_iter().flat_map(|section| section.iter_mut()) {
        let of_key: Vec<&Dependency> = package.dependencies.iter().filter(|one| one.key() == key).collect();
        let name = of_key.first().map_or("", |dependency| &dependency.name);
        if let Some(front) = replacement(name).filter(|front| is_first(name, front)) {
            *value = in_place(front, value.get("optional"), &of_key)?;
        }
    }
    manifest.extend(shared.map(|shared| ("workspace".to_owned(), shared)));
    Ok(())
}

/// The front for the dependencies of one name, with their features.
fn in_place(front: &str, optional: Option<&Toml>, of_name: &[&Dependency]) -> Result<Toml> {
    // It takes profilers of other versions of criterion, which a worker leaves alone anyway.
    let any_profiler = (front == CRITERION).then_some("any_profiler");
    let features = of_name.iter().flat_map(|dependency| &dependency.features).map(String::as_str);
    let mut keys = origin()?.keys(&format!("crates/{front}"));
    keys.insert("package".into(), front.into());
    keys.insert("features".into(), features.chain(any_profiler).map(Toml::from).collect::<Vec<_>>().into());
    keys.insert("default-features".into(), of_name.iter().any(|dependency| dependency.uses_default_features).into());
    keys.extend(optional.map(|optional| ("optional".to_owned(), optional.clone())));
    Ok(Toml::Table(keys))
}
