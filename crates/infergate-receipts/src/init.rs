//! What `init --json` writes.

use serde::Serialize;

/// Schema name of an [`Init`].
pub const INIT_SCHEMA: &str = "infergate.init/1";

/// What was done to a repository.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Init {
    /// [`INIT_SCHEMA`].
    pub schema: &'static str,
    /// Nothing was written: only what would be done is here.
    pub dry_run: bool,
    /// Every file that is asked for.
    pub files: Vec<InitFile>,
    /// What to know or to do next.
    pub notes: Vec<String>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InitFile {
    /// Below the package's folder.
    pub path: String,
    /// What happens to it.
    pub change: InitChange,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InitChange {
    /// It was not there.
    New,
    /// Lines are added.
    Added,
    /// It has what is needed already.
    Kept,
}
