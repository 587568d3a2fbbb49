//! Listing and reading; no system error is ignored.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use infergate_receipts::{Format, read};

/// The entries of `folder`, sorted; none if there is no such folder.
///
/// # Errors
/// A folder that exists and cannot be read: its entries would be ignored without a word.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    let mut paths: Vec<PathBuf> = paths.with_context(|| format!("{}: cannot be read", folder.display()))?;
    paths.sort();
    Ok(paths)
}

/// Whether the path exists, as anything: also as a link to nowhere, or as a file that cannot be read, which fails when it is read.
pub fn is_there(path: &Path) -> bool {
    let missing = |error: std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !path.symlink_metadata().is_err_and(missing)
}

/// The file at `path`; `None` if it does not exist.
///
/// # Errors
/// As [`read`].
pub fn read_if_there<T: Format>(path: &Path) -> Result<Option<T>> {
    is_there(path).then(|| read(path)).transpose()
}
