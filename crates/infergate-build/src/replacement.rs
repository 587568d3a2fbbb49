//! Replaces criterion or divan in a checkout by infergate's drop-in, so that the executable is a worker. Nothing in the repository itself
//! is changed.
//!
//! A dependency is renamed in the manifests and not patched for all packages: infergate's drop-in needs criterion itself.

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
    let drop_in = dependencies.find(|dependency| dependency.name == CRITERION);
    Ok(drop_in.map(|drop_in| format!("{}/counting", drop_in.key())))
}

/// Replaces criterion and divan in every manifest of the checkout `files` that has the workspace. All other versions stay as its Cargo.lock
/// has them.
///
/// # Errors
/// A manifest that cannot be read or written; what cargo cannot resolve.
pub fn replace_in_manifests(files: &Path, folder: &Path, workspace: &Workspace) -> Result<()> {
    if !workspace.lock_file().is_file() {
        // Versions as the repository's users get them. Other packages that use criterion, such as a profiler, must use the drop-in's
        // version.
        let mut cargo = toolchain::cargo_in(folder);
        cargo.arg("generate-lockfile");
        run_captured::cargo(cargo)?;
    }
    for package in &workspace.packages {
        edit(files, &package.manifest_path, |manifest| rename(manifest, package))?;
    }
    lock_file::resolve(folder).context("infergate (Rust 1.85 or newer) cannot take the place of criterion or divan")
}

/// Renames the dependency to the drop-in. Keys that a member inherits from its workspace are written out.
fn rename(manifest: &mut Table, package: &Package) -> Result<()> {
    let mut drop_ins = REPLACEMENTS;
    // Whether its benches name CodSpeed's criterion and never criterion itself.
    let texts = package.benches().filter_map(|bench| read_text(&bench.src_path, MAX_FILE_BYTES).ok());
    let text: String = texts.collect();
    let is_of_codspeed = text.contains("codspeed_criterion_compat")
        && !["criterion::", "crate criterion"].iter().any(|name| text.contains(name));
    drop_ins.sort_by_key(|(name, _)| is_of_codspeed && *name != CODSPEED);
    let has = |name: &str| package.dependencies.iter().any(|dependency| dependency.name == name);
    // Cargo takes no package under two names: only the first dependency that the manifest has is replaced.
    let is_first = |name: &str, drop_in: &str| {
        let first = drop_ins.iter().find(|(other, of)| *of == drop_in && has(other));
        first.is_some_and(|(first, _)| *first == name)
    };
    // The workspace's own list is for other members, too.
    let shared = manifest.remove("workspace");
    for (key, value) in dependency_sections(manifest).into_iter().flat_map(|section| section.iter_mut()) {
        let of_key: Vec<&Dependency> = package.dependencies.iter().filter(|one| one.key() == key).collect();
        let name = of_key.first().map_or("", |dependency| &dependency.name);
        if let Some(drop_in) = replacement(name).filter(|drop_in| is_first(name, drop_in)) {
            *value = in_place(drop_in, value.get("optional"), &of_key)?;
        }
    }
    manifest.extend(shared.map(|shared| ("workspace".to_owned(), shared)));
    Ok(())
}

/// The drop-in that replaces the dependencies of one name, with their features.
fn in_place(drop_in: &str, optional: Option<&Toml>, of_name: &[&Dependency]) -> Result<Toml> {
    // Accepts profilers of other versions of criterion, which a worker does not use anyway.
    let any_profiler = (drop_in == CRITERION).then_some("any_profiler");
    let features = of_name.iter().flat_map(|dependency| &dependency.features).map(String::as_str);
    let mut keys = origin()?.keys(&format!("crates/{drop_in}"));
    keys.insert("package".into(), drop_in.into());
    keys.insert("features".into(), features.chain(any_profiler).map(Toml::from).collect::<Vec<_>>().into());
    keys.insert("default-features".into(), of_name.iter().any(|dependency| dependency.uses_default_features).into());
    keys.extend(optional.map(|optional| ("optional".to_owned(), optional.clone())));
    Ok(Toml::Table(keys))
}
