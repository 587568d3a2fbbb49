//! Benches of plain criterion or divan, as they are: in a checkout of ours the dependency becomes infergate's front of that name,
//! so that the executable is a worker. Nothing in the repository itself is changed.
//!
//! A dependency is renamed in the manifests and not patched for all packages: infergate's front needs criterion itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use toml::{Table, Value as Toml};
use wildmatch::WildMatch;

use super::bench_target;
use super::swap::{dependency_sections, manifests, resolve, table, write};
use crate::config::BenchTarget;
use infergate_core::text_file::read_text;

/// The front's package.
pub const PACKAGE: &str = "infergate-criterion";
const DIVAN: &str = "infergate-divan";

/// What a front stands for: criterion and what takes its place elsewhere, and divan.
const FRONTS: [(&str, &str); 4] =
    [("criterion", PACKAGE), ("codspeed-criterion-compat", PACKAGE), ("criterion2", PACKAGE), ("divan", DIVAN)];

/// What a bench that one of them can measure has in its text.
const NAMED: [&str; 2] = ["criterion", "divan"];

/// Keys of a dependency that say where it comes from.
const PLACE: [&str; 9] = ["version", "path", "git", "branch", "tag", "rev", "registry", "registry-index", "package"];

/// Bench targets that an error names.
const MOST_NAMED: usize = 5;

/// No source file is larger.
const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Whether a package, as cargo describes it, takes criterion from where everybody does.
fn takes_criterion(package: &Value) -> bool {
    names(package).any(|name| front(name).is_some())
}

/// Whether it takes it from infergate, or is infergate.
pub fn takes_infergate(package: &Value) -> bool {
    let is_own = |name: &str| name == "infergate" || name == PACKAGE || name == DIVAN;
    package["name"].as_str().is_some_and(is_own) || names(package).any(is_own)
}

/// The front that takes the place of a package.
fn front(package: &str) -> Option<&'static str> {
    FRONTS.into_iter().find(|(name, _)| *name == package).map(|(_, front)| front)
}

fn names(package: &Value) -> impl Iterator<Item = &str> {
    package["dependencies"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str())
}

/// Whether the bench target in `folder` is one of plain criterion: it cannot be a worker before it has the front.
///
/// # Errors
/// When cargo does not start.
pub fn is_plain(target: &BenchTarget, folder: &Path) -> Result<bool> {
    let packages = bench_target::packages_of(target, folder)?;
    Ok(packages.iter().any(|package| {
        let names_infergate = || source(package, &target.target).is_some_and(|text| text.contains("infergate"));
        takes_criterion(package) && !(takes_infergate(package) && names_infergate())
    }))
}

/// The text of a package's bench target.
fn source(package: &Value, bench: &str) -> Option<String> {
    let mut targets = package["targets"].as_array()?.iter();
    let built = targets.find(|built| built["kind"][0] == "bench" && built["name"] == bench)?;
    read_text(Path::new(built["src_path"].as_str()?), MAX_SOURCE_BYTES).ok()
}

/// The bench targets to gate: the one that is named, or those that a list of names and globs names. Where nobody named one and there is
/// none of the usual name: all here that use criterion.
///
/// # Errors
/// A name or glob that names none, with those there are; when cargo does not start.
pub fn benches(target: &BenchTarget, folder: &Path) -> Result<Vec<BenchTarget>> {
    let is_list = target.target.contains([',', '*', '?']);
    let is_unnamed = target.target == BenchTarget::default().target;
    if !is_list && (!is_unnamed || !bench_target::packages_of(target, folder)?.is_empty()) {
        return Ok(vec![target.clone()]);
    }
    let usable = usable(target, folder)?;
    if !is_list {
        if usable.is_empty()
            && let Some(needing) = needing(target, folder)?
        {
            bail!("no bench target is built as things stand: {needing}");
        }
        return Ok(if usable.is_empty() { vec![target.clone()] } else { usable });
    }
    let mut chosen: Vec<BenchTarget> = Vec::new();
    for pattern in target.target.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()) {
        let glob = WildMatch::new(pattern);
        let named: Vec<&BenchTarget> = usable.iter().filter(|bench| glob.matches(&bench.target)).collect();
        if named.is_empty() {
            let names: BTreeSet<&str> = usable.iter().map(|bench| bench.target.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let there = if names.is_empty() {
                needing(target, folder)?.unwrap_or_else(|| "none here uses it".to_owned())
            } else {
                format!("there are {}", names.join(", "))
            };
            bail!("--bench-target: '{pattern}' names no bench target that uses criterion or divan; {there}");
        }
        for bench in named {
            if !chosen.contains(bench) {
                chosen.push(bench.clone());
            }
        }
    }
    Ok(chosen)
}

/// The bench targets that use criterion: of the package that is asked for, else of the one in this folder, else of the workspace. One
/// whose features are not asked for is none that cargo builds.
fn usable(target: &BenchTarget, folder: &Path) -> Result<Vec<BenchTarget>> {
    let metadata = bench_target::metadata(folder)?;
    let mut packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let own = folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join("Cargo.toml");
    let is_own = |package: &Value| package["manifest_path"].as_str().map(Path::new) == Some(&own);
    match &target.package {
        Some(name) => packages.retain(|package| package["name"] == **name),
        None if packages.iter().any(is_own) => packages.retain(is_own),
        None => {}
    }
    let many = packages.len() > 1;
    let mut usable = Vec::new();
    for package in packages.iter().filter(|package| takes_criterion(package) || takes_infergate(package)) {
        let enabled = enabled_features(package, target);
        let is_buildable = |built: &&Value| {
            let mut needed = built["required-features"].as_array().into_iter().flatten().filter_map(Value::as_str);
            built["kind"][0] == "bench" && needed.all(|needed| enabled.contains(needed))
        };
        let benches = package["targets"].as_array().into_iter().flatten().filter(is_buildable);
        for bench in benches.filter_map(|built| built["name"].as_str()) {
            if source(package, bench).is_some_and(|text| NAMED.iter().any(|name| text.contains(name))) {
                let of = if many { package["name"].as_str().map(str::to_owned) } else { target.package.clone() };
                usable.push(BenchTarget { package: of, target: bench.to_owned(), ..target.clone() });
            }
        }
    }
    Ok(usable)
}

/// Which bench targets here need features that are not asked for; `None` where there are none of them.
fn needing(target: &BenchTarget, folder: &Path) -> Result<Option<String>> {
    let metadata = bench_target::metadata(folder)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let benches = packages.filter(|package| takes_criterion(package)).flat_map(|package| {
        let enabled = enabled_features(package, target);
        let benches = package["targets"].as_array().into_iter().flatten().filter(|built| built["kind"][0] == "bench");
        benches.filter_map(move |bench| {
            let needed = bench["required-features"].as_array()?.iter().filter_map(Value::as_str);
            let needed: Vec<&str> = needed.filter(|needed| !enabled.contains(needed)).collect();
            let name = bench["name"].as_str()?;
            (!needed.is_empty()).then(|| format!("{name} takes --bench-features {}", needed.join(",")))
        })
    });
    let said: Vec<String> = benches.take(MOST_NAMED).collect();
    Ok((!said.is_empty()).then(|| said.join("; ")))
}

/// The features that are asked for, those of the default, and what they enable of the package's own.
fn enabled_features<'a>(package: &'a Value, target: &'a BenchTarget) -> BTreeSet<&'a str> {
    let mut waiting: Vec<&str> = target.features.iter().map(String::as_str).collect();
    waiting.extend(target.default_features.then_some("default"));
    let mut enabled = BTreeSet::new();
    while let Some(feature) = waiting.pop() {
        if enabled.insert(feature) {
            waiting.extend(package["features"][feature].as_array().into_iter().flatten().filter_map(Value::as_str));
        }
    }
    enabled
}

/// The feature of a bench target's dependency that counts its heap. `None` where it takes criterion from somewhere else than the front.
///
/// # Errors
/// When cargo does not start.
pub fn counting(target: &BenchTarget, folder: &Path) -> Result<Option<String>> {
    let packages = bench_target::packages_of(target, folder)?;
    let dependencies = packages.iter().filter_map(|package| package["dependencies"].as_array()).flatten();
    let front = dependencies.into_iter().find(|dependency| dependency["name"] == PACKAGE);
    let name = front.and_then(|front| front["rename"].as_str().or(front["name"].as_str()));
    Ok(name.map(|name| format!("{name}/counting")))
}

/// Puts the front into the checkout around `folder`, in every manifest of its workspace. All other versions stay as its Cargo.lock
/// has them.
///
/// # Errors
/// A manifest that cannot be read or written; what cargo cannot resolve.
pub fn put(folder: &Path) -> Result<()> {
    let lock = bench_target::lock_file(folder)?;
    for manifest in manifests(folder, &lock)? {
        let mut manifest_table = table(&manifest)?;
        if rename(&mut manifest_table) {
            write(folder, &manifest, &manifest_table)?;
        }
    }
    resolve(folder).context("criterion cannot be replaced by infergate's front")
}

/// Whether there was something to rename.
fn rename(manifest: &mut Table) -> bool {
    let mut found = false;
    for (name, value) in dependency_sections(manifest).into_iter().flat_map(|section| section.iter_mut()) {
        let package = value.get("package").and_then(Toml::as_str).unwrap_or(name);
        let is_inherited = value.get("workspace").is_some();
        let Some(front) = front(package).filter(|_| !is_inherited) else { continue };
        let mut dependency = value.as_table().cloned().unwrap_or_default();
        PLACE.iter().for_each(|key| drop(dependency.remove(*key)));
        dependency.insert("package".into(), Toml::from(front));
        match own_folder(front) {
            Some(folder) => dependency.insert("path".into(), Toml::from(folder.to_string_lossy().into_owned())),
            None => dependency.insert("version".into(), Toml::from(concat!("=", env!("CARGO_PKG_VERSION")))),
        };
        *value = Toml::Table(dependency);
        found = true;
    }
    found
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
