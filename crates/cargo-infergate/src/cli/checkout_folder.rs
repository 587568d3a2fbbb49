//! The folder that a checkout is kept in: where files may be deleted, and where not.
//!
//! A base folder can come from `infergate.toml`, which a pull request changes. So nothing is deleted below a folder that was
//! not made for it, and a mark in the folder says that it was.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::git::git;

/// The mark. Its text is for whoever finds the folder.
const MARK: &str = "INFERGATE_CHECKOUT.txt";
const TEXT: &str = "infergate checks out a git revision in `tree` beside this file, builds it in `target`, and deletes and\n\
                    overwrites files in both. The folder can be removed.\n";

/// Makes `folder` where it is missing and marks it. One without the mark is taken only when it is empty or `ours` by its name.
///
/// # Errors
/// A folder that holds something else, or a link to one; one that cannot be made.
pub fn claim(folder: &Path, ours: bool) -> Result<()> {
    let cannot = || format!("{}: cannot be made", folder.display());
    ensure!(ours || !folder.is_symlink(), "{}: is a link; name the folder itself with --base-folder", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let mark = folder.join(MARK);
    if mark.is_file() {
        return Ok(());
    }
    let is_empty = fs::read_dir(folder).with_context(cannot)?.next().is_none();
    ensure!(
        ours || is_empty,
        "{}: holds files that infergate did not put there ({MARK} is missing), and a checkout would overwrite them; name an \
         empty folder with --base-folder",
        folder.display()
    );
    fs::write(&mark, TEXT).with_context(cannot)
}

/// Whether `files` is the top of a git worktree and no link to elsewhere: git may change and delete what is in it.
pub fn is_worktree(files: &Path) -> bool {
    let top = || -> Result<bool> {
        let top = git(files, &["rev-parse", "--show-toplevel"])?;
        Ok(fs::canonicalize(top)? == fs::canonicalize(files)?)
    };
    is_marked(files) && !files.is_symlink() && files.join(".git").is_file() && top().unwrap_or(false)
}

/// Removes `files` and all below it; a link to elsewhere is removed itself.
///
/// # Errors
/// Where the folder around it does not carry the mark; what cannot be removed.
pub fn remove(files: &Path) -> Result<()> {
    if files.symlink_metadata().is_err() {
        return Ok(());
    }
    let place = files.display();
    ensure!(
        is_marked(files),
        "{place}: is not removed, the folder around it was not made by infergate; remove it by hand"
    );
    let removed =
        if files.is_symlink() || files.is_file() { fs::remove_file(files) } else { fs::remove_dir_all(files) };
    removed.with_context(|| format!("{place}: cannot be removed"))
}

fn is_marked(files: &Path) -> bool {
    files.parent().is_some_and(|folder| folder.join(MARK).is_file())
}
