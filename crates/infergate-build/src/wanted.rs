//! What is built of each side, and where.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use infergate_core::build_info;

use super::workspace::{BenchTarget, Workspace};

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
