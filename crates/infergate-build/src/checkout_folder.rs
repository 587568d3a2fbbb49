//! The folder that a checkout is kept in: where files may be deleted, and where not.
//!
//! A base folder can come from `infergate.toml`, which a pull request changes. So nothing is deleted below a folder that was
//! not made for it, and a mark in the folder says that it was.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};

use super::git::git;
use super::workspace::Workspace;
use infergate_receipts::write_text;

/// The mark. Its text is for whoever finds the folder.
const MARK: &str = "INFERGATE_CHECKOUT.txt";
const TEXT: &str = "infergate checks out a git revision in `tree` beside this file, builds it in `target`, and deletes and\n\
                    overwrites files in both. The folder can be removed.\n";

/// Makes `folder` where it is missing and marks it. One without the mark is taken only when it is empty or `ours` by its name.
pub fn claim(folder: &Path, ours: bool) -> Result<()> {
    let cannot =
        || format!("{}: cannot be made; name a folder that can be written with --base-folder", folder.display());
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

/// Takes over `files`, which another clone of `repository` checked out, as a CI has them that restores this folder for each run. What
/// git finds to be as `commit` has it keeps its time, so that cargo builds nothing of it anew; to check it out again changes the rest.
///
/// # Errors
/// What is no folder, or has submodules; when git cannot. `files` may be gone then.
pub fn adopt(files: &Path, repository: &Path, commit: &str) -> Result<()> {
    ensure!(is_marked(files) && files.is_dir() && !files.is_symlink(), "there is nothing to take over");
    ensure!(!files.join(".gitmodules").exists(), "submodules are checked out anew");
    let aside = files.with_extension("aside");
    remove(&aside)?;
    let adopted = with_a_worktrees_mark(files, &aside, repository, commit);
    remove(&aside)?;
    adopted
}

/// git marks a worktree by the file `.git` in it: one is made in an empty folder and laid over the one that is there.
fn with_a_worktrees_mark(files: &Path, aside: &Path, repository: &Path, commit: &str) -> Result<()> {
    fs::rename(files, aside)?;
    let place = files.to_string_lossy().into_owned();
    let add = ["worktree", "add", "--quiet", "--detach", "--no-checkout", "--force", "--force", &place, commit];
    git(repository, &add)?;
    let mark = aside.join(".git");
    if mark.is_dir() && !mark.is_symlink() {
        fs::remove_dir_all(&mark)?;
    }
    fs::rename(files.join(".git"), mark)?;
    fs::remove_dir(files)?;
    fs::rename(aside, files)?;
    git(files, &["read-tree", commit])?;
    // Its exit code says whether files differ, which is no failure here.
    let _ = git(files, &["update-index", "-q", "--refresh"]);
    Ok(())
}

/// Removes `files` and all below it; a link to elsewhere is removed itself.
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

/// Writes a file of the checkout `files`. A folder in it can be a link to anywhere: there nothing is written, and neither is a link
/// followed that is the file itself.
pub fn write(files: &Path, file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let inside = fs::canonicalize(files).is_ok_and(|files| folder.is_some_and(|folder| folder.starts_with(files)));
    ensure!(inside, "{}: a link leads there out of the checkout; put a folder in its place", file.display());
    write_text(file, text)
}

fn is_marked(files: &Path) -> bool {
    files.parent().is_some_and(|folder| folder.join(MARK).is_file())
}

/// Holds the folder for one gate.
///
/// # Errors
/// Where another gate has it, or the lock cannot be written.
pub fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    // A base folder can come from infergate.toml, and what lies in it from the repository.
    let file = infergate_core::lock::open(&path).with_context(|| format!("{}: cannot be written", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "{}: another gate uses it now; wait for it, or name another folder with --base-folder",
                folder.display()
            )
        }
        // A file system without locks: two gates at once would have to be told apart by their user.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Whether git ignores files here that a build script can have made beside the sources; a link is what was carried here, and in `target`
/// benches keep files.
pub fn has_made(files: &Path) -> bool {
    let named = git(files, &["clean", "-ffdXn"]).unwrap_or_default();
    let mut names = named.lines().filter_map(|line| line.strip_prefix("Would remove "));
    let is_known = |name: &str| ["Cargo.lock", "target/"].iter().any(|known| name.ends_with(known));
    names.any(|name| !is_known(name) && !files.join(name.trim_end_matches('/')).is_symlink())
}

/// Lets the build scripts of a workspace run again: what they made is gone, and cargo takes them for done.
pub fn touch_build_scripts(folder: &Path) -> Result<()> {
    let Ok(workspace) = Workspace::load(folder) else { return Ok(()) };
    let targets = workspace.packages.iter().flat_map(|package| &package.targets);
    for script in targets.filter(|target| target.is("custom-build") && !target.src_path.is_symlink()) {
        let touched = File::options().append(true).open(&script.src_path);
        touched.and_then(|file| file.set_modified(SystemTime::now())).with_context(|| {
            format!("{}: its time cannot be set, so that it is run again", script.src_path.display())
        })?;
    }
    Ok(())
}
