//! What `cargo metadata` says of the packages around a folder.

use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

use super::git::git;
use super::package::{Dependency, Package};
use super::{asked, frameworks, toolchain};
use crate::wanted::BenchTarget;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// `None` where cargo cannot tell: it says why when it builds.
pub fn packages(folder: &Path) -> Result<Option<Vec<Package>>> {
    let mut cargo = toolchain::cargo_in(folder);
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Option<Metadata> = serde_json::from_slice(&asked::output(cargo)?.stdout).ok();
    let mut packages = metadata.map(|metadata| metadata.packages);
    if let Some(packages) = &mut packages {
        frameworks::note_helpers(packages);
    }
    Ok(packages)
}

/// What the packages around a folder, and all that these are built from, ask for. Cargo writes a Cargo.lock where there is none.
pub fn all_dependencies(folder: &Path) -> Result<Vec<Dependency>> {
    let mut cargo = toolchain::cargo_in(folder);
    cargo.args(["metadata", "--format-version", "1"]);
    let metadata: Option<Metadata> = serde_json::from_slice(&asked::output(cargo)?.stdout).ok();
    Ok(metadata.into_iter().flat_map(|metadata| metadata.packages).flat_map(|package| package.dependencies).collect())
}

/// The packages that have a bench target of this name.
pub fn with_bench(bench: &str, folder: &Path) -> Result<Vec<Package>> {
    let mut packages = packages(folder)?.unwrap_or_default();
    packages.retain(|package| package.bench(bench).is_some());
    Ok(packages)
}

/// Those that the bench target may be of.
pub fn of_bench(target: &BenchTarget, folder: &Path) -> Result<Vec<Package>> {
    let mut packages = with_bench(&target.target, folder)?;
    packages.retain(|package| package.is_asked_for(target));
    Ok(packages)
}

/// The bench target as the checkout around `there` calls it: the package in that folder can have had another name, which another one has
/// now.
pub fn as_called(target: &BenchTarget, there: &Path) -> Result<BenchTarget> {
    let Some(name) = &target.package else { return Ok(target.clone()) };
    let was = packages(there)?.unwrap_or_default();
    let here = Path::new(".");
    let is = of_bench(target, here)?;
    let place = |package: &Package, folder: &Path| {
        let root = git(folder, &["rev-parse", "--show-toplevel"]).ok()?;
        Some(package.manifest_path.strip_prefix(root).ok()?.to_owned())
    };
    let own = is.first().and_then(|package| place(package, here));
    // A package that was moved into another one's folder keeps its name, and where it was nothing is left.
    let before = was.iter().find(|package| package.name == *name).and_then(|package| place(package, there));
    let others = packages(here)?.unwrap_or_default();
    if before.is_some() && others.iter().all(|package| place(package, here) != before) {
        return Ok(target.clone());
    }
    let same = was
        .iter()
        .find(|package| package.bench(&target.target).is_some() && own.is_some() && place(package, there) == own);
    let package = same.map_or_else(|| name.clone(), |package| package.name.clone());
    Ok(BenchTarget { package: Some(package), ..target.clone() })
}
