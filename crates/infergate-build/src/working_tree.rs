//! What is not committed, in a checkout of HEAD.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::git::uncommitted;

/// More is no change of somebody's but data that should be ignored.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 1 << 30;

/// Makes the checkout `to` hold what the working tree `from` holds; both are at one commit. Gives whether there was anything.
pub fn lay(from: &Path, to: &Path) -> Result<bool> {
    let files = uncommitted(from)?;
    ensure!(
        files.len() <= MAX_FILES,
        "{} files are not committed, more than {MAX_FILES}; commit or ignore them, or give --base-bin and --head-bin",
        files.len()
    );
    let mut bytes = 0;
    for name in &files {
        let (source, place) = (from.join(name), to.join(name));
        let cannot = || format!("{name}: cannot be copied into head's checkout");
        // A folder of the commit can have been a link, which would lead out of the checkout.
        for above in Path::new(name).ancestors().skip(1).filter(|above| to.join(above).is_symlink()) {
            remove(&to.join(above)).with_context(cannot)?;
        }
        remove(&place).with_context(cannot)?;
        let Ok(kind) = source.symlink_metadata() else { continue };
        if !kind.is_dir() && place.is_dir() {
            // Its files are named themselves; those named later are gone in the working tree.
            fs::remove_dir_all(&place).with_context(cannot)?;
        }
        if kind.is_symlink() {
            make_folder(&place).and_then(|()| link(&source, &place)).with_context(cannot)?;
        } else if kind.is_file() {
            bytes += kind.len();
            ensure!(
                bytes <= MAX_BYTES,
                "files that are not committed have more than {MAX_BYTES} bytes; commit or ignore them"
            );
            make_folder(&place).and_then(|()| fs::copy(&source, &place).map(drop)).with_context(cannot)?;
        }
    }
    Ok(!files.is_empty())
}

fn make_folder(place: &Path) -> std::io::Result<()> {
    place.parent().map_or(Ok(()), fs::create_dir_all)
}

/// A folder in its place stays where files below it are named themselves.
fn remove(place: &Path) -> std::io::Result<()> {
    match place.symlink_metadata() {
        Ok(kind) if !kind.is_dir() => fs::remove_file(place),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn link(source: &Path, place: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(source)?, place)
}

#[cfg(not(unix))]
fn link(source: &Path, place: &Path) -> std::io::Result<()> {
    fs::copy(source, place).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::git::git;
    use super::lay;

    #[test]
    fn a_folder_that_is_a_file_now_is_one_in_the_checkout_too() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        git(from.path(), &["init", "--quiet"]).expect("a repository");
        for place in [&from, &to] {
            fs::create_dir_all(place.path().join("data/deep")).expect("a folder");
            fs::write(place.path().join("data/deep/file"), "").expect("a file");
        }
        git(from.path(), &["add", "--all"]).expect("added");
        let who = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        git(from.path(), &[&who[..], &["commit", "--quiet", "--message", "a folder"]].concat()).expect("committed");
        fs::remove_dir_all(from.path().join("data")).expect("removed");
        fs::write(from.path().join("data"), "a file").expect("a file");
        assert!(lay(from.path(), to.path()).expect("laid"));
        assert_eq!(fs::read_to_string(to.path().join("data")).expect("a file"), "a file");
    }
}
