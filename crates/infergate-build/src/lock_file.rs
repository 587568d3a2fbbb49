//! A checkout's `Cargo.lock`: which dependencies two are built with, and cargo's own changes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use infergate_core::printable::{first_of, printable_within};
use infergate_core::text_file::read_text;
use toml::{Table, Value};

use super::{run_captured, toolchain};

/// A lock file of a thousand crates has 300 KB.
pub const MAX_BYTES: u64 = 16 << 20;

/// As many differences are named; the others are counted.
const NAMED: usize = 8;

/// How the dependencies in head's lock file differ from those in base's, in one sentence; `None` when they do not.
pub fn difference(base: &Path, head: &Path) -> Result<Option<String>> {
    let (was, is) = (versions(base)?, versions(head)?);
    let text = |versions: Option<&BTreeSet<String>>| {
        versions.map_or_else(|| "none".to_owned(), |all| all.iter().cloned().collect::<Vec<_>>().join(" and "))
    };
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let different: Vec<String> = names
        .into_iter()
        .filter(|name| was.get(*name) != is.get(*name))
        .map(|name| format!("{name} {} in head, {} in base", text(is.get(name)), text(was.get(name))))
        .collect();
    Ok((!different.is_empty()).then(|| first_of(&different, NAMED, "; ")))
}

/// The packages that a lock file lists.
pub fn packages(lock: &Table) -> &[Value] {
    lock.get("package").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What a lock file says of a package.
pub fn field<'p>(package: &'p Value, name: &str) -> Option<&'p str> {
    package.get(name).and_then(Value::as_str)
}

/// Reads a lock file.
pub fn read(path: &Path) -> Result<Table> {
    read_text(path, MAX_BYTES)?.parse().with_context(|| format!("{}: is no lock file of cargo", path.display()))
}

/// The versions of each package that comes from elsewhere. A package of the checkout itself is what is compared.
pub fn versions(path: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let lock = read(path)?;
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages(&lock) {
        let field = |name: &str| field(package, name).map(|text| printable_within(text, 200).into_owned());
        let (Some(name), Some(version), Some(source)) = (field("name"), field("version"), field("source")) else {
            continue;
        };
        // Two commits of a git dependency have one version.
        let revision = source.split_once('#').map(|(_, commit)| format!(" ({})", commit.get(..10).unwrap_or(commit)));
        versions.entry(name).or_default().insert(version + &revision.unwrap_or_default());
    }
    Ok(versions)
}

/// Lets cargo write Cargo.lock as the manifests ask for it; what fits them already stays as it is. What is new there, this compiler can
/// build. `hint` stands behind a conflict of versions.
pub fn resolve(folder: &Path, hint: &str) -> Result<()> {
    cargo(folder, &["metadata", "--format-version", "1"], hint)
}

/// Runs cargo on the lock file of `folder`.
pub fn cargo(folder: &Path, arguments: &[&str], hint: &str) -> Result<()> {
    let mut cargo = toolchain::cargo_in(folder);
    cargo.args(arguments).env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
    run_captured::cargo(cargo, hint).map(drop)
}
