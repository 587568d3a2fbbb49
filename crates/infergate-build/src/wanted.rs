//! What is built of each side, and where.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use infergate_core::build_info;
use infergate_receipts::BuiltWith;

use super::workspace::Workspace;

/// The bench target that counts its heap, for the memory phase.
pub const MEMORY_TARGET: &str = "memory";

/// Where one side is built: the working tree or a checkout.
#[derive(Debug, Clone)]
pub struct Place {
    /// How messages name a checkout: `origin/main (1234567890)`; `None` for the working tree.
    pub name: Option<String>,
    /// The package's folder in it.
    pub folder: PathBuf,
    /// A checkout's own target folder.
    pub target: Option<PathBuf>,
    /// Build with exactly what its Cargo.lock says, and fail if that does not fit its manifests.
    pub locked: bool,
    /// Another toolchain of rustup than its own.
    pub toolchain: Option<String>,
    /// Its commit, and whether it has files that no commit has.
    pub commit: (Option<String>, Option<bool>),
    pub workspace: Arc<Workspace>,
}

impl Place {
    /// The working tree.
    ///
    /// # Errors
    /// As [`Workspace::load`].
    pub fn here() -> Result<Self> {
        let folder = PathBuf::from(".");
        let workspace = Arc::new(Workspace::load(&folder)?);
        let commit = build_info::git(&folder);
        Ok(Self { name: None, folder, target: None, locked: false, toolchain: None, commit, workspace })
    }

    /// ` of origin/main (1234567890)`; nothing for the working tree.
    pub fn of_it(&self) -> String {
        self.name.as_ref().map_or_else(String::new, |name| format!(" of {name}"))
    }
}

/// What is built of each side, and where.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The bench target that is the worker.
    pub bench: BenchTarget,
    /// Folder that keeps the checkout and build of a base revision; `None`: in the user's cache.
    pub base_folder: Option<PathBuf>,
    /// Folder of what the working tree builds.
    pub target_folder: PathBuf,
}

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
    /// What it reads and git ignores, linked into each checkout: paths below the current folder.
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
            carry: Vec::new(),
        }
    }
}

impl BenchTarget {
    /// `parse`, or `codec/parse` where its package was named or is one of several.
    pub fn name(&self) -> String {
        self.package.as_ref().map_or_else(|| self.target.clone(), |package| format!("{package}/{}", self.target))
    }

    /// What cargo is told beside the target's name.
    pub fn built_with(&self) -> BuiltWith {
        let Self { package, features, default_features, profile, .. } = self.clone();
        BuiltWith { package, features, no_default_features: !default_features, profile }
    }
}
