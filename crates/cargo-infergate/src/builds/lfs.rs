//! Files that git keeps elsewhere (Git LFS), and that a checkout may have as pointers alone.

use std::path::Path;

use super::git::git;
use super::output;

/// Says which files of a revision's checkout are pointers: a bench that reads them fails.
pub fn say_pointers(files: &Path, revision: &str) {
    let attributes = ["grep", "--quiet", "filter=lfs", "--", ".gitattributes", "*/.gitattributes"];
    if git(files, &attributes).is_err() {
        return;
    }
    let list = ["grep", "--files-with-matches", "-I", "^version https://git-lfs.github.com/spec/v1$"];
    let listed = git(files, &list).unwrap_or_default();
    let pointers: Vec<&str> = listed.lines().collect();
    let Some(first) = pointers.first() else { return };
    let more = if pointers.len() > 1 { format!(" and {} more files", pointers.len() - 1) } else { String::new() };
    output::line(&format!(
        "{revision}: of {first}{more} there is the pointer alone, the file is in Git LFS; install git-lfs and run `git lfs fetch --all`"
    ));
}
