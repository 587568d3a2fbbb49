//! A package, as `cargo metadata` describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::wanted::BenchTarget;

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
