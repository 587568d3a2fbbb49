//! What a harness adds to base's Cargo.toml.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use toml::{Table, Value as Toml};

use super::{Checkouts, not_comparable};
use crate::config::BenchTarget;

/// Head's development dependencies that base does not have, as cargo understood them.
pub fn add_dependencies(manifest: &mut Table, own: &Value, checkouts: Checkouts) -> Result<()> {
    let all = own["dependencies"].as_array().cloned().unwrap_or_default();
    for dependency in all.iter().filter(|dependency| dependency["kind"] == "dev") {
        let name = dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap_or_default().to_owned();
        let value = as_toml(dependency, checkouts)?;
        let section = match dependency["target"].as_str() {
            Some(platform) => entry(entry(manifest, "target")?, platform)?,
            None => &mut *manifest,
        };
        entry(section, "dev-dependencies")?.entry(name).or_insert(value);
    }
    Ok(())
}

fn entry<'t>(table: &'t mut Table, name: &str) -> Result<&'t mut Table> {
    let value = table.entry(name).or_insert_with(|| Toml::Table(Table::new()));
    value.as_table_mut().with_context(|| format!("base's Cargo.toml: {name} is no table"))
}

fn as_toml(dependency: &Value, checkouts: Checkouts) -> Result<Toml> {
    let mut table = Table::new();
    let mut put = |key: &str, text: &str| drop(table.insert(key.to_owned(), Toml::from(text)));
    let name = dependency["name"].as_str().unwrap_or_default();
    match dependency["req"].as_str() {
        Some("*") | None => {}
        Some(version) => put("version", version),
    }
    if dependency["rename"].is_string() {
        put("package", name);
    }
    if let Some(path) = dependency["path"].as_str().map(Path::new) {
        // A package of the repository itself is what is compared: base's own, or none.
        match checkouts.in_base(path) {
            Some(place) if place.is_dir() => put("path", &place.to_string_lossy()),
            Some(_) => not_comparable(format!(
                "head's harness needs the package {name} of this repository, and base has none"
            ))?,
            None => put("path", &path.to_string_lossy()),
        }
    } else if let Some(git) = dependency["source"].as_str().and_then(|source| source.strip_prefix("git+")) {
        let (url, query) = git.split_once('?').unwrap_or((git, ""));
        put("git", url.split('#').next().unwrap_or(url));
        if let Some((key @ ("branch" | "tag" | "rev"), value)) =
            query.split('#').next().and_then(|query| query.split_once('='))
        {
            put(key, value);
        }
    }
    if let (Some(registry), false) = (dependency["registry"].as_str(), dependency["path"].is_string()) {
        put("registry-index", registry);
    }
    if dependency["uses_default_features"] == false {
        table.insert("default-features".into(), Toml::Boolean(false));
    }
    let features: Vec<Toml> = dependency["features"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| Some(Toml::from(name.as_str()?)))
        .collect();
    if !features.is_empty() {
        table.insert("features".into(), Toml::Array(features));
    }
    Ok(Toml::Table(table))
}

/// Head's bench targets, in place of base's of the same names.
pub fn add_targets(manifest: &mut Table, target: &BenchTarget, own: &Value, folder: &Path) -> Result<()> {
    let benches = manifest.entry("bench").or_insert_with(|| Toml::Array(Vec::new()));
    let benches = benches.as_array_mut().context("base's Cargo.toml: bench is no list of targets")?;
    for name in [&target.target, &target.memory_target] {
        let Some(source) = super::bench(own, name).and_then(|bench| bench["src_path"].as_str()) else { continue };
        let path = Path::new(source).strip_prefix(folder)?.to_string_lossy().into_owned();
        benches.retain(|known| known.get("name").and_then(Toml::as_str) != Some(name));
        let mut bench = Table::new();
        bench.insert("name".into(), Toml::from(name.as_str()));
        bench.insert("path".into(), Toml::from(path));
        bench.insert("harness".into(), Toml::Boolean(false));
        benches.push(Toml::Table(bench));
    }
    Ok(())
}
