//! What a bench reads and git ignores, in a checkout: `[bench] carry`.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::git::git;

/// Links what `carry` names below `from`, a folder of the working tree, to the same place below `to`, the same folder of the checkout
/// of `revision`. A link, because data can be large.
pub fn lay(carry: &[String], from: &Path, to: &Path, revision: &str) -> Result<()> {
    for path in carry {
        let named = || format!("bench.carry: '{path}'");
        let is_below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(is_below, "{}: has to be a path below this folder, without `..`", named());
        // Without a `/` at its end, behind which a link cannot be made.
        let path: &Path = &Path::new(path).components().collect::<PathBuf>();
        let (source, place) = (from.join(path), to.join(path));
        ensure!(source.exists(), "{}: is not there; make it, or leave it out", named());
        let cannot = || format!("{}: cannot be linked into the checkout of '{revision}'", named());
        // One by one: a folder of the revision can be a link to anywhere, where nothing is made.
        let mut folder = to.to_owned();
        for part in path.parent().into_iter().flat_map(Path::components) {
            folder.push(part);
            let found = folder.symlink_metadata();
            let is_link = found.as_ref().is_ok_and(|found| found.is_symlink());
            ensure!(!is_link, "{}: a link stands in its way in the checkout of '{revision}'", named());
            if found.is_err() {
                fs::create_dir(&folder).with_context(cannot)?;
            }
        }
        // A checkout that a program is built in keeps its folders, and what an earlier gate linked into them.
        if place.is_symlink() && git(to, &["ls-files", "--", &format!(":(literal){}", path.display())])?.is_empty() {
            fs::remove_file(&place).with_context(cannot)?;
        }
        ensure!(
            place.symlink_metadata().is_err(),
            "{}: is in git in revision '{revision}', which has its own; leave it out",
            named()
        );
        link(&source, &place).with_context(cannot)?;
    }
    Ok(())
}

#[cfg(unix)]
fn link(source: &Path, place: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::canonicalize(source)?, place)
}

#[cfg(not(unix))]
fn link(_source: &Path, _place: &Path) -> io::Result<()> {
    Err(io::Error::other("this system has no links that everybody may make"))
}
