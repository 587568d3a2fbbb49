//! Git submodules of a checkout.

use std::path::Path;

use anyhow::{Context, Result};

use super::git::git;
use super::{checkout_folder, output};

/// Checks out the submodules of the checkout `files`, except those that the working tree `repository` lacks, too. Commits come from the
/// working tree's submodules. Git fetches those that they lack, by its own rules: a revision can name any address, and git refuses a folder
/// of this machine.
///
/// # Errors
/// A submodule that git cannot fetch.
pub fn fetch(files: &Path, repository: &Path, revision: &str) -> Result<()> {
    if !files.join(".gitmodules").exists() {
        return Ok(());
    }
    // `-COMMIT PATH` where it was never fetched.
    let status = git(repository, &["submodule", "status"]).unwrap_or_default();
    let missing: Vec<&str> =
        status.lines().filter_map(|line| Some(line.strip_prefix('-')?.split_once(' ')?.1)).collect();
    if !missing.is_empty() {
        output::status_escaped(&format!(
            "{revision}: without submodules that the working tree lacks: {}",
            missing.join(", ")
        ));
    }
    // `160000 COMMIT 0<tab>PATH`.
    let listed = git(files, &["ls-files", "--stage", "-z"])?;
    let submodules = listed.split('\0').filter_map(|entry| entry.strip_prefix("160000 ")?.split_once(" 0\t"));
    for (commit, path) in submodules.filter(|(_, path)| !missing.contains(path)) {
        let (to, from) = (files.join(path), repository.join(path));
        checkout_folder::checkout_in_place(&to, &from, commit).or_else(|_| {
            checkout_folder::remove(&to)?;
            let path = format!(":(literal){path}");
            git(files, &["submodule", "update", "--init", "--force", "--quiet", "--", &path])
                .map(drop)
                .with_context(|| format!("revision '{revision}': its submodules cannot be fetched"))
        })?;
        fetch(&to, &from, revision)?;
    }
    Ok(())
}
