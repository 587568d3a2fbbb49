//! Compares two `Cargo.lock`, and has cargo update one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use infergate_core::printable::first_of;
use toml::{Table, Value};

use super::git::short;
use super::manifest::table;
use super::{run_captured, toolchain};

/// The most differences that are named; the others are counted.
const NAMED: usize = 8;

/// How the dependencies in head's lock file differ from those in base's, in one sentence; `None` if they do not.
pub fn difference(base: &Path, head: &Path) -> Result<Option<String>> {
    let texts = |lock: &Path| -> Result<BTreeMap<String, String>> {
        let all = versions(lock)?.into_iter();
        Ok(all.map(|(name, versions)| (name, Vec::from_iter(versions).join(" and "))).collect())
    };
    Ok(differences(&texts(base)?, &texts(head)?, "", "none"))
}

/// The values that differ between head and base, each in a clause: `NAME{verb} VALUE in head, VALUE in base`. `None` if none differ.
pub fn differences(
    base: &BTreeMap<String, String>,
    head: &BTreeMap<String, String>,
    verb: &str,
    nothing: &str,
) -> Option<String> {
    let value = |values: &BTreeMap<String, String>, name| values.get(name).map_or(nothing, String::as_str).to_owned();
    let names: BTreeSet<&String> = base.keys().chain(head.keys()).collect();
    let different: Vec<String> = names
        .into_iter()
        .filter(|name| base.get(*name) != head.get(*name))
        .map(|name| format!("{name}{verb} {} in head, {} in base", value(head, name), value(base, name)))
        .collect();
    (!different.is_empty()).then(|| first_of(&different, NAMED, "; "))
}

/// The packages that a lock file lists.
pub fn packages(lock: &Table) -> &[Value] {
    lock.get("package").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A field of a package in a lock file.
pub fn field<'p>(package: &'p Value, name: &str) -> Option<&'p str> {
    package.get(name).and_then(Value::as_str)
}

/// The versions of each package from outside the checkout. Packages of the checkout itself are what the gate compares.
pub fn versions(path: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let lock = table(path)?;
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages(&lock) {
        let fields = ["name", "version", "source"].map(|name| field(package, name));
        let [Some(name), Some(version), Some(source)] = fields else { continue };
        // Two commits of a git dependency have one version.
        let revision = source.split_once('#').map(|(_, commit)| format!(" ({})", short(commit)));
        versions.entry(name.to_owned()).or_default().insert(version.to_owned() + &revision.unwrap_or_default());
    }
    Ok(versions)
}

/// Has cargo update Cargo.lock to fit the manifests. Versions that fit already stay; new ones are versions that this compiler can build.
pub fn resolve(folder: &Path) -> Result<()> {
    cargo(folder, &["metadata", "--format-version", "1"])
}

/// Runs cargo on the lock file of `folder`.
pub fn cargo(folder: &Path, arguments: &[&str]) -> Result<()> {
    let mut cargo = toolchain::cargo_in(folder);
    cargo.args(arguments).env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
    run_captured::cargo(cargo).map(drop)
}
