//! The folder that a checkout is kept in: where files may be deleted, and where not.
//!
//! A base folder can come from `infergate.toml`, which a pull request changes. So nothing is deleted below a folder that was
//! not made for it, and a mark in the folder says that it was.

use std::fs::{self, File, TryLockError};
pub use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::git::{git, root};
use super::progress;
use infergate_receipts::write_text;

/// The mark. Its text is for whoever finds the folder.
const MARK: &str = "INFERGATE_CHECKOUT.txt";
const TEXT: &str = "infergate keeps a git revision in `tree` and its build in `target`, and overwrites both.\n\
                    The folder can be removed.\n";

/// Makes `folder` if it is missing, and marks it. A folder without the mark is used only if it is empty or `is_default_place`: in the cache.
pub fn claim(folder: &Path, is_default_place: bool) -> Result<()> {
    let cannot =
        || format!("{}: cannot be made; name a folder that can be written with --base-folder", folder.display());
    ensure!(
        is_default_place || !folder.is_symlink(),
        "{}: is a link; name the folder itself with --base-folder",
        folder.display()
    );
    fs::create_dir_all(folder).with_context(cannot)?;
    let mark = folder.join(MARK);
    if mark.is_file() {
        return Ok(());
    }
    let is_empty = fs::read_dir(folder).with_context(cannot)?.next().is_none();
    ensure!(
        is_default_place || is_empty,
        "{}: holds files that infergate did not put there ({MARK} is missing); name an empty folder with --base-folder",
        folder.display()
    );
    fs::write(&mark, TEXT).with_context(cannot)
}

/// Makes `folder` where it is missing, with the folders above it.
pub fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))
}

/// `path` without links; as it is where it leads nowhere.
pub fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Checks out `commit` of `repository` in its worktree `files`, which is made where it is missing. What git ignores stays, as in a working
/// tree: what build scripts made among the sources, and what other commands built. But where the revision has no Cargo.lock, cargo chooses
/// dependencies anew.
///
/// # Errors
/// When git cannot. `files` may be gone then.
pub fn checkout_in_place(files: &Path, repository: &Path, commit: &str) -> Result<()> {
    let check_out = || {
        git(files, &["checkout", "--quiet", "--detach", "--force", commit])?;
        git(files, &["clean", "-ffdq"])?;
        let ignored = ["ls-files", "--others", "--ignored", "--exclude-standard", "--", "Cargo.lock", "*/Cargo.lock"];
        git(files, &ignored)?.lines().try_for_each(|lock| remove(&files.join(lock)))
    };
    // The top of a worktree and no link to elsewhere: git may change and delete what is in it.
    let is_worktree = !files.is_symlink() && root(files).is_ok_and(|root| real(&root) == real(files));
    if is_worktree && check_out().is_ok() {
        return Ok(());
    }
    // What a killed run or a moved repository left behind.
    let connect = || connect(files, repository, commit).and_then(|()| check_out());
    connect().or_else(|_| {
        remove(files)?;
        connect()
    })
}

/// Makes `files` a worktree of `repository` at `commit`, without checking it out. Files that are there stay: those of a checkout of another
/// clone, as a CI has them that restores this folder for each run. What git finds to be as `commit` has it keeps its time, so that cargo
/// builds nothing of it anew.
fn connect(files: &Path, repository: &Path, commit: &str) -> Result<()> {
    let aside = files.with_extension("aside");
    remove(&aside)?;
    let is_kept = files.is_dir() && !files.is_symlink();
    if is_kept {
        fs::rename(files, &aside)?;
    } else {
        remove(files)?;
    }
    // --force twice: git may still know a worktree of this name. To prune would remove other people's worktrees, too.
    let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout", "--force", "--force"];
    git(repository, &[&add[..], &[&*files.to_string_lossy(), commit]].concat())?;
    if is_kept {
        // git marks a worktree by the file `.git` in it.
        let mark = aside.join(".git");
        remove(&mark)?;
        fs::rename(files.join(".git"), mark)?;
        fs::remove_dir(files)?;
        fs::rename(aside, files)?;
        git(files, &["read-tree", commit])?;
        // Its exit code says whether files differ, which is no failure here.
        let _ = git(files, &["update-index", "-q", "--refresh"]);
    }
    Ok(())
}

/// Removes a file, or a folder and all below it; a link to elsewhere is removed itself. An interrupted git is no reason to remove anything.
pub fn remove(place: &Path) -> Result<()> {
    progress::ensure_not_cancelled()?;
    let removed = match place.symlink_metadata() {
        Err(_) => return Ok(()),
        Ok(kind) if kind.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
    };
    removed.with_context(|| format!("{}: cannot be removed", place.display()))
}

/// The place of `name` below `folder`, a folder of a checkout, with the folders above it.
///
/// # Errors
/// A link among the revision's files, which can lead out of the checkout; a folder that cannot be made.
pub fn place(folder: &Path, name: &Path) -> Result<PathBuf> {
    let is_linked = name.ancestors().skip(1).any(|above| folder.join(above).is_symlink());
    ensure!(!is_linked, "a link stands in its way in the checkout");
    let place = folder.join(name);
    place.parent().map_or(Ok(()), fs::create_dir_all).context("its folder cannot be made in the checkout")?;
    Ok(place)
}

/// Copies what lies at `from` to the place `name` below `folder`: a file, or a folder with all below it. A link stays a link, for it can lead
/// to a folder above itself. `with_time`: a file keeps the time of its last change, by which cargo knows what is older than what it needs.
pub fn copy(from: &Path, folder: &Path, name: &Path, with_time: bool) -> Result<()> {
    let cannot = || format!("{}: cannot be copied to {}", from.display(), folder.display());
    let found = from.symlink_metadata().with_context(cannot)?;
    let to = place(folder, name).with_context(cannot)?;
    if found.is_dir() {
        fs::create_dir_all(&to).with_context(cannot)?;
        for entry in fs::read_dir(from).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            copy(&entry.path(), folder, &name.join(entry.file_name()), with_time)?;
        }
        return Ok(());
    }
    remove(&to)?;
    if found.is_symlink() {
        fs::read_link(from).and_then(|target| symlink(target, &to)).with_context(cannot)?;
    } else if found.is_file() {
        fs::copy(from, &to).with_context(cannot)?;
        if with_time {
            let set = |file: File| file.set_modified(found.modified()?);
            File::options().append(true).open(&to).and_then(set).with_context(cannot)?;
        }
    }
    Ok(())
}

/// Writes a file of the checkout `files`. A folder in it can be a link to anywhere: there nothing is written, and neither is a link
/// followed that is the file itself.
pub fn write(files: &Path, file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let inside = fs::canonicalize(files).is_ok_and(|files| folder.is_some_and(|folder| folder.starts_with(files)));
    ensure!(inside, "{}: a link leads there out of the checkout; put a folder in its place", file.display());
    write_text(file, text)
}

/// Holds the folder for one gate.
///
/// # Errors
/// Where another gate has it, or the lock cannot be written.
pub fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    // A base folder can come from infergate.toml, and what lies in it from the repository.
    let file = infergate_core::lock::open(&path).with_context(|| format!("{}: cannot be written", path.display()))?;
    // On a file system without locks two gates at once would have to be told apart by their user.
    ensure!(
        !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        "{}: another gate uses it now; wait, or name another with --base-folder",
        folder.display()
    );
    Ok(file)
}
