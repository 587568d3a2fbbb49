//! What lies in a folder, and whether something lies at a path: an error of the system is passed over nowhere.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use infergate_receipts::{Format, read};

/// Everything straight in `folder`, sorted; nothing where there is no such folder.
///
/// # Errors
/// A folder that is there and cannot be read: what is in it would be passed over in silence.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()),
    };
    let mut paths: Vec<PathBuf> = paths.with_context(|| format!("{}: cannot be read", folder.display()))?;
    paths.sort();
    Ok(paths)
}

/// Whether anything stands at `path`, be it no file, a link to nowhere, or one that cannot be read: reading it says so.
pub fn is_there(path: &Path) -> bool {
    let missing = |error: std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !path.symlink_metadata().is_err_and(missing)
}

/// The file at `path`; `None` where nothing stands there.
///
/// # Errors
/// As [`read`].
pub fn read_if_there<T: Format>(path: &Path) -> Result<Option<T>> {
    is_there(path).then(|| read(path)).transpose()
}
