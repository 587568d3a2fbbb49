//! What a harness adds to base's Cargo.toml.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use super::{Checkouts, not_comparable, table};
use crate::bench_choice::with_main;
use crate::package::{Dependency, Package};
use crate::wanted::{BenchTarget, MEMORY_TARGET};
use crate::workspace;

/// Head's development dependencies and their features that base does not have, as cargo understood them.
pub fn add_dependencies(manifest: &mut Table, own: &Package, checkouts: Checkouts) -> Result<()> {
    for dependency in own.dependencies.iter().filter(|dependency| dependency.kind.as_deref() == Some("dev")) {
        let name = dependency.rename.as_ref().unwrap_or(&dependency.name).clone();
        let value = as_toml(dependency, checkouts)?;
        let section = match &dependency.target {
            Some(platform) => entry(entry(manifest, "target")?, platform)?,
            None => &mut *manifest,
        };
        let known = entry(section, "dev-dependencies")?.entry(name).or_insert(value);
        add_features(known, &features(dependency, checkouts)?);
    }
    Ok(())
}

/// The features that are asked for. Of a package of the repository cargo refuses those that base's does not have.
fn features(dependency: &Dependency, checkouts: Checkouts) -> Result<Vec<String>> {
    let mut features = dependency.features.clone();
    if let Some(place) = dependency.path.as_ref().and_then(|path| checkouts.in_base(path))
        && !features.is_empty()
    {
        let packages = workspace::packages(&place)?.unwrap_or_default();
        let own = packages.iter().find(|package| package.name == dependency.name);
        features.retain(|feature| own.is_none_or(|own| own.features.contains_key(feature)));
    }
    Ok(features)
}

fn add_features(dependency: &mut Toml, features: &[String]) {
    if let (Some(version), false) = (dependency.as_str(), features.is_empty()) {
        *dependency = Table::from_iter([("version".to_owned(), Toml::from(version))]).into();
    }
    let Some(table) = dependency.as_table_mut().filter(|_| !features.is_empty()) else { return };
    let known = table.entry("features").or_insert_with(|| Toml::Array(Vec::new()));
    let Some(known) = known.as_array_mut() else { return };
    let is_new = |feature: &&String| known.iter().all(|known| known.as_str() != Some(feature.as_str()));
    let new: Vec<Toml> = features.iter().filter(is_new).map(|feature| Toml::from(feature.as_str())).collect();
    known.extend(new);
}

fn entry<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table> {
    let value = table.entry(name).or_insert_with(|| Toml::Table(Table::new()));
    value.as_table_mut().with_context(|| format!("base's Cargo.toml: {name} is no table"))
}

/// Without its features.
fn as_toml(dependency: &Dependency, checkouts: Checkouts) -> Result<Toml> {
    let mut table = Table::new();
    let mut put = |key: &str, text: &str| drop(table.insert(key.to_owned(), Toml::from(text)));
    let name = &dependency.name;
    if dependency.req != "*" {
        put("version", &dependency.req);
    }
    if dependency.rename.is_some() {
        put("package", name);
    }
    if let Some(path) = &dependency.path {
        // A package of the repository itself is what is compared: base's own, or none.
        match checkouts.in_base(path) {
            Some(place) if place.is_dir() => put("path", &place.to_string_lossy()),
            Some(_) => not_comparable(format!(
                "head's harness needs the package {name} of this repository, and base has none"
            ))?,
            None => put("path", &path.to_string_lossy()),
        }
    } else if let Some(git) = dependency.source.as_ref().and_then(|source| source.strip_prefix("git+")) {
        let (url, query) = git.split_once('?').unwrap_or((git, ""));
        put("git", url.split('#').next().unwrap_or(url));
        if let Some((key @ ("branch" | "tag" | "rev"), value)) =
            query.split('#').next().and_then(|query| query.split_once('='))
        {
            put(key, value);
        }
    }
    if let (Some(registry), None) = (&dependency.registry, &dependency.path) {
        put("registry-index", registry);
    }
    if !dependency.uses_default_features {
        table.insert("default-features".into(), Toml::Boolean(false));
    }
    Ok(Toml::Table(table))
}

/// Head's bench targets, in place of base's of the same names; and those others whose files came with them and that base lacks, which
/// cargo would find and take for tests. Several that are laid over base one after the other are then built alike.
pub fn add_targets(
    manifest: &mut Table,
    target: &BenchTarget,
    own: &Package,
    (folder, laid): (&Path, &[PathBuf]),
) -> Result<()> {
    let of_head = with_main(&table(&own.manifest_path)?);
    let features = manifest.get("features").cloned();
    let is_there = |feature: &&String| features.as_ref().is_some_and(|features| features.get(feature).is_some());
    let benches = manifest.entry("bench").or_insert_with(|| Toml::Array(Vec::new()));
    let benches = benches.as_array_mut().context("base's Cargo.toml: bench is no list of targets")?;
    let is_known = |name: &str| benches.iter().any(|known| known.get("name").and_then(Toml::as_str) == Some(name));
    let others = of_head.into_iter().map(|(name, _)| name).filter(|name| !is_known(name)).collect::<Vec<_>>();
    for name in others.iter().map(String::as_str).chain([target.target.as_str(), MEMORY_TARGET]) {
        let Some(bench) = own.bench(name).filter(|bench| laid.contains(&bench.src_path)) else { continue };
        let path = bench.src_path.strip_prefix(folder)?.to_string_lossy().into_owned();
        // Cargo refuses those that base does not have.
        let needed: Vec<String> = bench.required_features.iter().filter(is_there).cloned().collect();
        benches.retain(|known| known.get("name").and_then(Toml::as_str) != Some(name));
        let mut bench = Table::new();
        bench.insert("name".into(), Toml::from(name));
        bench.insert("path".into(), Toml::from(path));
        bench.insert("harness".into(), Toml::Boolean(false));
        bench.insert("required-features".into(), Toml::from(needed));
        benches.push(Toml::Table(bench));
    }
    Ok(())
}
