//! What `cargo metadata` says of the packages around a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Deserialize;

use super::git::git;
use super::{asked, bench_target, criterion_front};
use crate::wanted::BenchTarget;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub manifest_path: PathBuf,
    pub targets: Vec<Target>,
    pub dependencies: Vec<Dependency>,
    /// Each with those that it enables.
    #[serde(default)]
    pub features: BTreeMap<String, Vec<String>>,
    /// Crates of the workspace that it takes criterion or divan through, as its code calls them: one with macros that write benches, or its
    /// own library.
    #[serde(skip)]
    pub helpers: BTreeSet<String>,
    /// The same, of those with infergate's front, too.
    #[serde(skip)]
    pub front_helpers: BTreeSet<String>,
}

#[derive(Deserialize)]
pub struct Target {
    pub name: String,
    kind: Vec<String>,
    /// Nobody asks for it in a message on what was built.
    #[serde(default)]
    pub src_path: PathBuf,
    #[serde(default, rename = "required-features")]
    pub required_features: Vec<String>,
}

#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
    /// In the manifest, where it is another one.
    pub rename: Option<String>,
    /// `dev` or `build`; `None` for those of the package itself.
    pub kind: Option<String>,
    /// The platform that alone needs it.
    pub target: Option<String>,
    /// The version that is asked for; `*` where none is.
    pub req: String,
    pub source: Option<String>,
    pub registry: Option<String>,
    pub path: Option<PathBuf>,
    pub uses_default_features: bool,
    pub features: Vec<String>,
}

impl Package {
    /// Whether the bench target may be of this package.
    pub fn is_asked_for(&self, target: &BenchTarget) -> bool {
        target.package.as_ref().is_none_or(|name| self.name == *name)
    }

    /// Whether `folder` is its own or lies below: cargo then takes it.
    pub fn is_around(&self, folder: &Path) -> bool {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.manifest_path.parent().is_some_and(|own| folder.starts_with(own))
    }

    pub fn benches(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.is("bench"))
    }

    pub fn bench(&self, name: &str) -> Option<&Target> {
        self.benches().find(|bench| bench.name == name)
    }
}

impl Target {
    pub fn is(&self, kind: &str) -> bool {
        self.kind.first().is_some_and(|first| first == kind)
    }
}

/// `None` where cargo cannot tell: it says why when it builds.
pub fn packages(folder: &Path) -> Result<Option<Vec<Package>>> {
    let mut cargo = bench_target::cargo(folder);
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Option<Metadata> = serde_json::from_slice(&asked::output(cargo)?.stdout).ok();
    let mut packages = metadata.map(|metadata| metadata.packages);
    if let Some(packages) = &mut packages {
        criterion_front::note_helpers(packages);
    }
    Ok(packages)
}

/// What the packages around a folder, and all that these are built from, ask for. Cargo writes a Cargo.lock where there is none.
pub fn all_dependencies(folder: &Path) -> Result<Vec<Dependency>> {
    let mut cargo = bench_target::cargo(folder);
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
