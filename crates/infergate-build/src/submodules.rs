//! Git submodules of a checkout.

use std::path::Path;

use anyhow::{Context, Result};

use super::git::git;
use super::output;

/// Says of each submodule of a working tree where git keeps it, and where it came from.
const PLACES: &str =
    r#"printf '%s\t%s\n' "$(git rev-parse --absolute-git-dir)" "$(git config --get remote.origin.url)""#;

/// Fetches the submodules of the checkout `files`, but for those that the working tree of `repository` does without, too. First from the
/// working tree's own, which are here; what they lack from where they came from.
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
    let near = near(repository);
    let near: Vec<&str> = near.iter().flat_map(|setting| ["-c", setting]).chain(update.iter().copied()).collect();
    git(files, &near)
        .or_else(|_| git(files, &update))
        .map(drop)
        .with_context(|| format!("revision '{revision}': its submodules cannot be fetched"))
}

/// Settings by which git takes what it would fetch from elsewhere from the working tree's submodules.
fn near(repository: &Path) -> Vec<String> {
    let listed = git(repository, &["submodule", "foreach", "--quiet", "--recursive", PLACES]).unwrap_or_default();
    let places = listed.lines().filter_map(|line| line.split_once('\t')).filter(|(_, from)| !from.is_empty());
    let settings = places.map(|(folder, from)| format!("url.{folder}.insteadOf={from}"));
    std::iter::once("protocol.file.allow=always".to_owned()).chain(settings).collect()
}
