//! `[bench] carry`: files that a bench reads and git ignores, linked into a checkout.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::checkout_folder::{self, real};
use super::git::git;

/// Links the paths of `carry` below `from`, a folder of the working tree, to the same place below `to`, the same folder of the checkout of
/// `revision`. Links, because data can be large.
pub fn link_into(carry: &[String], from: &Path, to: &Path, revision: &str) -> Result<()> {
    carry
        .iter()
        .try_for_each(|name| link_one(name, from, to, revision).with_context(|| format!("bench.carry: '{name}'")))
}

fn link_one(name: &str, from: &Path, to: &Path, revision: &str) -> Result<()> {
    let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(is_below, "has to be a path below this folder, without `..`");
    // Without a `/` at its end: a link cannot be made at such a path.
    let name: PathBuf = Path::new(name).components().collect();
    let source = from.join(&name);
    ensure!(source.exists(), "is not there; make it, or leave it out");
    let of_revision = git(to, &["ls-files", "--", &format!(":(literal){}", name.display())])?;
    ensure!(of_revision.is_empty(), "is in git in revision '{revision}', which has its own; leave it out");
    let place = checkout_folder::place(to, &name)?;
    // The link of an earlier gate.
    checkout_folder::remove(&place)?;
    checkout_folder::symlink(real(&source), &place).context("cannot be linked into the checkout")
}
