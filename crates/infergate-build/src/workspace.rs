//! The packages of one checkout, as `cargo metadata` describes them, and the benchmark framework that each depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use infergate_receipts::BuiltWith;
use serde::Deserialize;

use super::checkout_folder::real;
use super::{run_captured, toolchain};

/// The drop-in replacement of criterion.
pub const CRITERION: &str = "infergate-criterion";
/// The drop-in replacement of divan.
pub const DIVAN: &str = "infergate-divan";
pub const CODSPEED: &str = "codspeed-criterion-compat";

/// The packages that are replaced, and the replacement of each.
pub const REPLACEMENTS: [(&str, &str); 6] = [
    ("criterion", CRITERION),
    (CODSPEED, CRITERION),
    ("codspeed-criterion-compat-walltime", CRITERION),
    ("divan", DIVAN),
    ("codspeed-divan-compat", DIVAN),
    ("codspeed-divan-compat-walltime", DIVAN),
];

/// The bench target that counts its heap, for the memory phase.
pub const MEMORY_TARGET: &str = "memory";

/// The bench target that is the worker, `[bench]`.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchTarget {
    /// Its package; `None`: the one of the current folder.
    pub package: Option<String>,
    /// Its name.
    pub target: String,
    /// Whether the user named it.
    pub is_named: bool,
    /// Features to build both with.
    pub features: Vec<String>,
    /// Whether both are built with their package's default features.
    pub default_features: bool,
    /// Profile to build both with; `None`: cargo's own for benches.
    pub profile: Option<String>,
    /// Other bench targets of its package that one call of cargo builds with it.
    pub together: Vec<String>,
    /// Files that it reads and git ignores, linked into each checkout: paths below the current folder.
    pub carry: Vec<String>,
}

impl Default for BenchTarget {
    fn default() -> Self {
        Self {
            package: None,
            target: "inference".into(),
            is_named: false,
            features: Vec::new(),
            default_features: true,
            profile: None,
            together: Vec::new(),
            carry: Vec::new(),
        }
    }
}

impl BenchTarget {
    /// `parse`, or `codec/parse` if its package was named or is one of several.
    pub fn name(&self) -> String {
        self.package.as_ref().map_or_else(|| self.target.clone(), |package| format!("{package}/{}", self.target))
    }

    /// Cargo's arguments for its features; none for the default ones.
    pub fn cargo_features(&self) -> Vec<String> {
        let named = (!self.features.is_empty()).then(|| format!("--features={}", self.features.join(",")));
        let others = (!self.default_features).then(|| "--no-default-features".to_owned());
        named.into_iter().chain(others).collect()
    }

    /// The record of cargo's arguments, without the target's name.
    pub fn built_with(&self) -> BuiltWith {
        let Self { package, features, default_features, profile, .. } = self.clone();
        BuiltWith { package, features, no_default_features: !default_features, profile }
    }
}

/// The packages around a folder.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    /// Where cargo builds the working tree.
    pub target_directory: PathBuf,
    pub packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its id for cargo: a dependency can have the same name.
    pub id: String,
    pub name: String,
    pub manifest_path: PathBuf,
    pub targets: Vec<Target>,
    pub dependencies: Vec<Dependency>,
    #[serde(default)]
    pub features: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub struct Target {
    pub name: String,
    kind: Vec<String>,
    pub src_path: PathBuf,
    #[serde(default, rename = "required-features")]
    pub required_features: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Dependency {
    pub name: String,
    /// Its name in the manifest, if that is another one.
    pub rename: Option<String>,
    /// `dev` or `build`; `None` for those of the package itself.
    pub kind: Option<String>,
    pub path: Option<PathBuf>,
    pub features: Vec<String>,
    pub uses_default_features: bool,
}

impl Dependency {
    /// Its name in the manifest.
    pub fn key(&self) -> &str {
        self.rename.as_ref().unwrap_or(&self.name)
    }
}

impl Workspace {
    /// The workspace around `folder`.
    ///
    /// # Errors
    /// Cargo's, if it finds none or cannot read it.
    pub fn load(folder: &Path) -> Result<Self> {
        let mut cargo = toolchain::cargo_in(folder);
        cargo.args(["metadata", "--format-version", "1", "--no-deps"]);
        let metadata = run_captured::cargo(cargo)?;
        serde_json::from_slice(&metadata)
            .with_context(|| format!("{}: cargo metadata cannot be read", folder.display()))
    }

    pub fn manifest(&self) -> PathBuf {
        self.root.join("Cargo.toml")
    }

    /// The Cargo.lock, whether it exists or not.
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("Cargo.lock")
    }

    /// The manifests of all packages, and the root's.
    pub fn manifests(&self) -> BTreeSet<PathBuf> {
        self.packages.iter().map(|package| package.manifest_path.clone()).chain([self.manifest()]).collect()
    }

    /// The packages that may have the bench target.
    pub fn with_bench(&self, target: &BenchTarget) -> Vec<&Package> {
        let has = |package: &&Package| package.is_selected_by(target) && package.bench(&target.target).is_some();
        self.packages.iter().filter(has).collect()
    }

    /// Whether one of the packages that may have the bench target depends on a package that matches.
    pub fn depends_on(&self, target: &BenchTarget, is_match: &dyn Fn(&str) -> bool) -> bool {
        self.with_bench(target).iter().any(|package| self.package_depends_on(package, is_match))
    }

    /// Whether a package depends on a package that matches: directly, or through a member of the workspace, such as one whose macros write
    /// benches.
    pub fn package_depends_on(&self, package: &Package, is_match: &dyn Fn(&str) -> bool) -> bool {
        let mut looked_at = BTreeSet::new();
        let mut dependencies: Vec<&Dependency> = package.dependencies.iter().collect();
        while let Some(one) = dependencies.pop() {
            if is_match(&one.name) {
                return true;
            }
            // Each member once: a large workspace has millions of paths from one to another.
            if one.path.is_some() && looked_at.insert(&one.name) {
                let member = self.packages.iter().find(|member| member.name == one.name);
                let of_member = member.into_iter().flat_map(|member| &member.dependencies);
                dependencies.extend(of_member.filter(|of_member| of_member.kind.is_none()));
            }
        }
        false
    }
}

/// The replacement of a package in checkouts.
pub fn replacement(package: &str) -> Option<&'static str> {
    REPLACEMENTS.into_iter().find(|(name, _)| *name == package).map(|(_, replacement)| replacement)
}

/// Whether a package is criterion or divan, whose benches are not workers.
pub fn is_plain(package: &str) -> bool {
    replacement(package).is_some()
}

/// Whether a package makes benches workers.
pub fn is_infergate(package: &str) -> bool {
    ["infergate", CRITERION, DIVAN].contains(&package)
}

impl Package {
    pub fn is_selected_by(&self, target: &BenchTarget) -> bool {
        target.package.as_ref().is_none_or(|name| self.name == *name)
    }

    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// Whether `folder` is its own or lies below: cargo then takes it.
    pub fn is_around(&self, folder: &Path) -> bool {
        real(folder).starts_with(self.folder())
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Workspace;

    /// Of 64 members each uses all before it.
    #[test]
    fn a_framework_is_found_through_other_members_however_many_ways_lead_there() {
        let dependency = |name: &str, path: Option<&str>| -> Value {
            json!({ "name": name, "path": path, "features": [], "uses_default_features": true })
        };
        let package = |number: usize| {
            let before = (0..number).map(|before| dependency(&format!("p{before}"), Some("/")));
            let own = (number == 0).then(|| dependency("criterion", None));
            let dependencies: Vec<Value> = before.chain(own).collect();
            let name = format!("p{number}");
            json!({ "id": name, "name": name, "manifest_path": "/Cargo.toml", "targets": [], "dependencies": dependencies })
        };
        let packages: Vec<Value> = (0..64).map(package).collect();
        let metadata = json!({ "workspace_root": "/", "target_directory": "/target", "packages": packages });
        let workspace: Workspace = serde_json::from_value(metadata).expect("a workspace");
        let last = workspace.packages.last().expect("a package");
        assert!(workspace.package_depends_on(last, &|name| name == "criterion"));
        assert!(!workspace.package_depends_on(last, &|name| name == "divan"));
    }
}
