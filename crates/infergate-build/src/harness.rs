//! Head's benches over base's sources: if base has no such bench target yet, the change that adds it can be gated all the same.
//!
//! Base gets head's bench files, `[[bench]]` tables and development dependencies, and keeps its own sources, other dependencies and
//! Cargo.lock, to which packages are added that only the benches need. What base has may come in no other version: what head upgrades would
//! hide in base.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::lock_file::{self, field, packages, versions};
use super::manifest::{entry, table};
use super::revision::Tree;
use super::workspace::{Package, Workspace};
use super::{checkout_folder, outside_paths};
use infergate_core::worker::WorkerError;

/// Lays the benches of `head`'s package `own` over the same package of the checkout `base`.
///
/// # Errors
/// [`WorkerError::NotComparable`] if base lacks the package, or they do not fit it; a file that cannot be read or written.
pub fn lay(own: &Package, head: &Workspace, base: &Tree) -> Result<()> {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let of_head = whole(own.folder());
    let folder = of_head.strip_prefix(whole(&base.repository)).map(|below| base.files.join(below));
    let folder = folder.ok().filter(|folder| folder.join("Cargo.toml").is_file());
    let Some(folder) = folder else {
        return not_comparable(&format!("base has no package where head's {} is", own.name));
    };
    let before = Workspace::load(&folder)?;
    lock_file::resolve(&folder, "").context("base")?;
    let locked = versions(&before.lock_file())?;
    for name in bench_files(own)? {
        checkout_folder::copy(&own.folder().join(&name), &folder, &name, false)?;
    }
    edit(&folder.join("Cargo.toml"), base, |manifest| take_benches(manifest, &table(&own.manifest_path)?))?;
    // What members inherit.
    let of_head = table(&head.manifest())?;
    let shared = of_head.get("workspace").and_then(|workspace| workspace.get("dependencies")).and_then(Toml::as_table);
    if let Some(shared) = shared {
        edit(&before.manifest(), base, |manifest| {
            let own = entry(entry(manifest, "workspace")?, "dependencies")?;
            for (name, value) in shared {
                own.entry(name).or_insert_with(|| value.clone());
            }
            Ok(())
        })?;
    }
    outside_paths::keep(&base.files, &base.repository)?;
    add_packages(&head.lock_file(), &before.lock_file(), base)?;
    lock_file::resolve(&folder, "")
        .or_else(|error| not_comparable(&format!("head's benches do not fit base: {error:#}")))?;
    let now = versions(&before.lock_file())?;
    let upgraded = locked.iter().find(|(name, versions)| now.get(*name).is_none_or(|now| !now.is_superset(versions)));
    match upgraded {
        Some((name, _)) => not_comparable(&format!(
            "head's benches need another version of {name} than base's Cargo.lock has; upgrade it in a commit of its own"
        )),
        None => Ok(()),
    }
}

fn edit(manifest: &Path, base: &Tree, change: impl FnOnce(&mut Table) -> Result<()>) -> Result<()> {
    let mut edited = table(manifest)?;
    change(&mut edited)?;
    checkout_folder::write(&base.files, manifest, &edited.to_string())
}

/// The files of a package's benches, counted from its folder: all of `benches`, and each that lies elsewhere.
fn bench_files(own: &Package) -> Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for bench in own.benches() {
        let path = bench.src_path.strip_prefix(own.folder());
        let path = path.with_context(|| format!("bench target '{}': move it below its package", bench.name))?;
        let name = if path.starts_with("benches") { Path::new("benches") } else { path };
        if !names.contains(&name.to_owned()) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Head's `[[bench]]` tables in place of base's, and its development dependencies before base's.
fn take_benches(base: &mut Table, head: &Table) -> Result<()> {
    let features = entry(base, "features")?.clone();
    let mut benches = head.get("bench").and_then(Toml::as_array).cloned().unwrap_or_default();
    for bench in benches.iter_mut().filter_map(Toml::as_table_mut) {
        // Cargo refuses those that base does not have.
        if let Some(required) = bench.get_mut("required-features").and_then(Toml::as_array_mut) {
            required.retain(|feature| feature.as_str().is_some_and(|feature| features.contains_key(feature)));
        }
    }
    base.insert("bench".into(), Toml::Array(benches));
    let development = |manifest: &Table| manifest.get("dev-dependencies").and_then(Toml::as_table).cloned();
    entry(base, "dev-dependencies")?.extend(development(head).unwrap_or_default());
    for (platform, dependencies) in head.get("target").and_then(Toml::as_table).into_iter().flatten() {
        let of_platform = dependencies.as_table().and_then(development);
        if let Some(of_platform) = of_platform {
            entry(entry(entry(base, "target")?, platform)?, "dev-dependencies")?.extend(of_platform);
        }
    }
    Ok(())
}

/// Adds head's locked packages to base's Cargo.lock that it does not know. Cargo leaves out what nobody needs.
fn add_packages(head: &Path, base: &Path, tree: &Tree) -> Result<()> {
    if !head.is_file() {
        return Ok(());
    }
    // Of a git dependency base keeps the commit that it has: with two of them cargo would take either.
    let key = |package: &Toml| {
        let [name, version, source] =
            ["name", "version", "source"].map(|name| field(package, name).unwrap_or_default().to_owned());
        (name, version, source.split('#').next().unwrap_or_default().to_owned())
    };
    let (of_head, mut lock) = (table(head)?, table(base)?);
    let known = packages(&lock).to_vec();
    // A package of the repository has no source; base has its own.
    let is_missing =
        |package: &&Toml| package.get("source").is_some() && !known.iter().any(|known| key(known) == key(package));
    let all = known.iter().chain(packages(&of_head).iter().filter(is_missing)).cloned().collect();
    lock.insert("package".into(), Toml::Array(all));
    checkout_folder::write(&tree.files, base, &lock.to_string())
}

fn not_comparable<T>(why: &str) -> Result<T> {
    let remedy = "gate this change with --base-bin and --head-bin, or merge the benches first";
    Err(WorkerError::NotComparable(format!("{why}; {remedy}")).into())
}
