//! Git submodules of a checkout.

use std::path::Path;

use anyhow::{Context, Result};

use super::git::git;
use super::output;

/// Fetches the submodules of the checkout `files`, but for those that the working tree of `repository` does without, too.
///
/// # Errors
/// When git cannot fetch them.
pub fn fetch(files: &Path, repository: &Path, revision: &str) -> Result<()> {
    if !files.join(".gitmodules").exists() {
        return Ok(());
    }
    // `-COMMIT PATH` where it was never fetched.
    let status = git(repository, &["submodule", "status"]).unwrap_or_default();
    let missing: Vec<&str> =
        status.lines().filter_map(|line| Some(line.strip_prefix('-')?.split_once(' ')?.1)).collect();
    if !missing.is_empty() {
        output::line(&format!("{revision}: without submodules that the working tree lacks: {}", missing.join(", ")));
    }
    let others: Vec<String> = missing.iter().map(|path| format!(":(exclude,literal){path}")).collect();
    let mut update = vec!["submodule", "update", "--init", "--recursive", "--force", "--quiet", "--", "."];
    update.extend(others.iter().map(String::as_str));
    git(files, &update).map(drop).with_context(|| format!("revision '{revision}': its submodules cannot be fetched"))
}
