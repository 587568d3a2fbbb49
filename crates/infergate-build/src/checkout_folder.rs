//! The folder of a checkout: where files may be deleted, and where not.
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

/// Makes `folder` if it is missing, and marks it. A folder without the mark is used only if it is empty or `is_default_place`: in the
/// cache.
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

/// Makes `folder` if it is missing, with the folders above it.
pub fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))
}

/// `path` without links; unchanged if it leads nowhere.
pub fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Checks out `commit` of `repository` in its worktree `files`, which is made if it is missing. Files that git ignores stay, as in a
/// working tree: those that build scripts made among the sources, and those that other commands built. But an ignored Cargo.lock is
/// removed, so that cargo chooses dependencies again.
///
/// # Errors
/// Git's. `files` may be missing then.
pub fn checkout_in_place(files: &Path, repository: &Path, commit: &str) -> Result<()> {
    let check_out = || {
        git(files, &["checkout", "--quiet", "--detach", "--force", commit])?;
        git(files, &["clean", "-ffdq"])?;
        let ignored = ["ls-files", "--others", "--ignored", "--exclude-standard", "--", "Cargo.lock", "*/Cargo.lock"];
        git(files, &ignored)?.lines().try_for_each(|lock| remove(&files.join(lock)))
    };
    // It is the root of a worktree and no link to elsewhere: git may change and delete its files.
    let is_worktree = !files.is_symlink() && root(files).is_ok_and(|root| real(&root) == real(files));
    if is_worktree && check_out().is_ok() {
        return Ok(());
    }
    // After a killed run, or if the repository was moved.
    let connect = || connect(files, repository, commit).and_then(|()| check_out());
    connect().or_else(|_| {
        remove(files)?;
        connect()
    })
}

/// Makes `files` a worktree of `repository` at `commit`, without checking it out. Files that are there stay, such as those of a CI that
/// restores this folder for each run from the checkout of another clone. A file that is as `commit` has it keeps its time, so that cargo
/// does not build it again.
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
        // It fails if files differ, which is no error here.
        let _ = git(files, &["update-index", "-q", "--refresh"]);
    }
    Ok(())
}

/// Removes a file, or a folder and all below it; a link is removed itself. Nothing once the user ended the run: the error that led here may
/// come from an interrupted git.
pub fn remove(place: &Path) -> Result<()> {
    progress::ensure_not_cancelled()?;
    let removed = match place.symlink_metadata() {
        Err(_) => return Ok(()),
        Ok(kind) if kind.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
    };
    removed.with_context(|| format!("{}: cannot be removed", place.display()))
}

/// The path of `name` below `folder`, a folder of a checkout. Makes the folders above it.
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

/// Copies a file, or a folder with all below it, from `from` to the path `name` below `folder`. A link stays a link, because it can lead to
/// a folder above itself. `with_time`: a file keeps the time of its last change, by which cargo decides what to build again.
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

/// Writes a file of the checkout `files`. Does not follow a link: neither a folder of the checkout that leads out of it, nor the file
/// itself.
pub fn write(files: &Path, file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let inside = fs::canonicalize(files).is_ok_and(|files| folder.is_some_and(|folder| folder.starts_with(files)));
    ensure!(inside, "{}: a link leads there out of the checkout; put a folder in its place", file.display());
    write_text(file, text)
}

/// Locks the folder for one gate.
///
/// # Errors
/// If another gate has it, or the lock cannot be written.
pub fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    // A base folder can come from infergate.toml, and the files in it from the repository.
    let file = infergate_core::lock::open(&path).with_context(|| format!("{}: cannot be written", path.display()))?;
    // On a file system without locks the user must not run two gates at once.
    ensure!(
        !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        "{}: another gate uses it now; wait, or name another with --base-folder",
        folder.display()
    );
    Ok(file)
}
