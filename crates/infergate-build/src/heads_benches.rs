//! Copies head's benches over base's sources: if base has no such bench target yet, the change that adds it can be gated all the same.
//!
//! Base gets head's bench files, `[[bench]]` tables and development dependencies, and keeps its own sources, other dependencies and
//! Cargo.lock, to which packages are added that only the benches need. No package of base may change its version, or head's upgrade would
//! hide.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::checkout::Checkout;
use super::checkout_folder::{self, real};
use super::lock_file::{self, field, packages, versions};
use super::manifest::{edit, entry, table};
use super::outside_paths;
use super::workspace::{Package, Workspace};
use infergate_core::worker::WorkerError;

/// Copies the benches of `head`'s package `own` over the same package of the checkout `base`.
///
/// # Errors
/// [`WorkerError::NotComparable`] if base lacks the package, or they do not fit it; a file that cannot be read or written.
pub fn overlay_benches(own: &Package, head: &Workspace, base: &Checkout) -> Result<()> {
    let of_head = real(own.folder());
    let folder = of_head
        .strip_prefix(real(&base.repository))
        .map(|below| base.files.join(below))
        .ok()
        .filter(|folder| folder.join("Cargo.toml").is_file());
    let Some(folder) = folder else {
        return not_comparable(&format!("base has no package where head's {} is", own.name));
    };
    let before = Workspace::load(&folder)?;
    lock_file::resolve(&folder).context("base")?;
    let locked = versions(&before.lock_file())?;
    for name in bench_files(own)? {
        checkout_folder::copy(&own.folder().join(name), &folder, name, false)?;
    }
    edit(&base.files, &folder.join("Cargo.toml"), |manifest| take_benches(manifest, &table(&own.manifest_path)?))?;
    // Dependencies that members inherit from the workspace.
    let of_head = table(&head.manifest())?;
    let shared = of_head.get("workspace").and_then(|workspace| workspace.get("dependencies")?.as_table());
    if let Some(shared) = shared {
        edit(&base.files, &before.manifest(), |manifest| {
            let own = entry(entry(manifest, "workspace")?, "dependencies")?;
            for (name, value) in shared {
                own.entry(name).or_insert_with(|| value.clone());
            }
            Ok(())
        })?;
    }
    outside_paths::make_absolute(&base.files, &base.repository)?;
    add_packages(&head.lock_file(), &before.lock_file(), base)?;
    lock_file::resolve(&folder)
        .or_else(|error| not_comparable(&format!("head's benches do not fit base: {error:#}")))?;
    let now = versions(&before.lock_file())?;
    let upgraded = locked.iter().find(|(name, versions)| now.get(*name).is_none_or(|now| !now.is_superset(versions)));
    let Some((name, _)) = upgraded else { return Ok(()) };
    not_comparable(&format!("head's benches need another version of {name} than base's Cargo.lock has"))
}

/// The files of a package's benches, relative to its folder: all of `benches`, and each that lies elsewhere.
fn bench_files(own: &Package) -> Result<BTreeSet<&Path>> {
    own.benches()
        .map(|bench| match bench.src_path.strip_prefix(own.folder()) {
            Ok(path) if path.starts_with("benches") => Ok(Path::new("benches")),
            Ok(path) if !path.starts_with("..") => Ok(path),
            _ => not_comparable(&format!("head's bench target '{}' lies outside its package", bench.name)),
        })
        .collect()
}

/// Head's `[[bench]]` tables in place of base's, and its development dependencies before base's.
fn take_benches(base: &mut Table, head: &Table) -> Result<()> {
    let features = entry(base, "features")?.clone();
    let mut benches = head.get("bench").and_then(Toml::as_array).cloned().unwrap_or_default();
    for bench in benches.iter_mut().filter_map(Toml::as_table_mut) {
        // Cargo refuses features that base does not have.
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

/// Adds locked packages of head that base's Cargo.lock lacks. Cargo drops those that nobody needs.
fn add_packages(head: &Path, base: &Path, checkout: &Checkout) -> Result<()> {
    if !head.is_file() {
        return Ok(());
    }
    // Base keeps its commit of a git dependency: with two of them cargo would take either.
    let key = |package: &Toml| {
        let fields = ["name", "version", "source"].map(|name| field(package, name).unwrap_or_default());
        fields.map(|field| field.split('#').next().map(str::to_owned))
    };
    let of_head = table(head)?;
    edit(&checkout.files, base, |lock| {
        let mut all = packages(lock).to_vec();
        let known: BTreeSet<_> = all.iter().map(key).collect();
        // A package of the repository has no source; base has its own.
        let is_missing = |package: &&Toml| package.get("source").is_some() && !known.contains(&key(package));
        all.extend(packages(&of_head).iter().filter(is_missing).cloned());
        lock.insert("package".into(), Toml::Array(all));
        Ok(())
    })
}

fn not_comparable<T>(why: &str) -> Result<T> {
    let remedy = "gate this change with --base-bin and --head-bin, or merge the benches first";
    Err(WorkerError::NotComparable(format!("{why}; {remedy}")).into())
}
