//! Which dependencies two checkouts are built with, by their `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use infergate_core::printable::printable_within;
use infergate_core::text_file::read_text;

use super::asked;

/// A lock file of a thousand crates has 300 KB.
pub const MAX_BYTES: u64 = 16 << 20;

/// As many differences are named; the others are counted.
const NAMED: usize = 8;

/// The `Cargo.lock` that cargo reads for the package in `folder`, whether it exists or not.
pub fn path(mut cargo: Command, folder: &Path) -> Result<PathBuf> {
    cargo.args(["locate-project", "--workspace", "--message-format", "plain"]).current_dir(folder);
    let output = asked::output(cargo)?;
    let manifest = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    ensure!(
        output.status.success() && manifest.is_absolute(),
        "{}: cargo finds no package there; choose a revision that has one",
        folder.display()
    );
    Ok(manifest.with_file_name("Cargo.lock"))
}

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
    let more = different.len().saturating_sub(NAMED);
    let named = different.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    Ok((!different.is_empty()).then(|| format!("{named}{rest}")))
}

/// The versions of each package that comes from elsewhere. A package of the checkout itself is what is compared.
fn versions(path: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let text = read_text(path, MAX_BYTES)?;
    let lock: toml::Table = text.parse().with_context(|| format!("{}: is no lock file of cargo", path.display()))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in &packages {
        let field = |name: &str| {
            package.get(name).and_then(toml::Value::as_str).map(|text| printable_within(text, 200).into_owned())
        };
        let (Some(name), Some(version), Some(source)) = (field("name"), field("version"), field("source")) else {
            continue;
        };
        // Two commits of a git dependency have one version.
        let revision = source.split_once('#').map(|(_, commit)| format!(" ({})", commit.get(..10).unwrap_or(commit)));
        versions.entry(name).or_default().insert(version + &revision.unwrap_or_default());
    }
    Ok(versions)
}
