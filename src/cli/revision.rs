//! A git revision, checked out beside the working tree and built.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::config::Config;
use crate::paired::Program;

/// A revision's files.
pub struct Tree {
    /// Its folder.
    pub folder: PathBuf,
    /// Its commit.
    pub commit: String,
}

pub fn checkout(_revision: &str, _config: &Config) -> Result<Tree> {
    bail!("not yet")
}

pub fn build(_tree: &Tree, _config: &Config) -> Result<Program> {
    bail!("not yet")
}
