//! Calls of git.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::progress;
use super::run_captured::run_captured;
use infergate_core::build_info::{commit_by, git_command};
use infergate_receipts::write_text;

/// Runs `git -C folder ARGUMENTS` and gives its stdout without its last line's end. A folder's name can end in a space.
pub fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    run(git_command(folder), arguments)
}

/// The same with `index` in place of the repository's own.
pub fn with_index(index: &Path, folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut git = git_command(folder);
    git.env("GIT_INDEX_FILE", index);
    run(git, arguments)
}

fn run(mut git: Command, arguments: &[&str]) -> Result<String> {
    git.args(arguments);
    let output = run_captured(git)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("git {}: {}", arguments.first().unwrap_or(&""), reason(&stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches(['\n', '\r']).to_owned())
}

/// The first error in git's stderr, which is the reason, and its last line, which is the result or a remedy.
fn reason(stderr: &str) -> String {
    let is_error = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    let plain = |line: &str| {
        line.trim_start_matches("fatal: ").trim_start_matches("error: ").trim().trim_end_matches('.').to_owned()
    };
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let mut shown: Vec<String> = lines.clone().find(is_error).into_iter().chain(lines.next_back()).map(plain).collect();
    shown.dedup();
    if shown.is_empty() { "no reason given".into() } else { shown.join("; ") }
}

/// The first ten digits of a commit.
pub fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// The root of the repository around `folder`.
pub fn root(folder: &Path) -> Result<PathBuf> {
    git(folder, &["rev-parse", "--show-toplevel"]).map(PathBuf::from)
}

/// The path of `folder` relative to that root, with a `/` at its end; empty for the root itself.
pub fn prefix(folder: &Path) -> Result<String> {
    git(folder, &["rev-parse", "--show-prefix"])
}

/// The text of the file `path`, relative to the root, in `commit`, without its last line's end; `None` if it has no such file.
pub fn file_of(folder: &Path, commit: &str, path: &str) -> Result<Option<String>> {
    // `100644 blob ID<tab>PATH`; a link has another mode.
    let entry = git(folder, &["ls-tree", "--full-tree", commit, "--", &format!(":(literal){path}")])?;
    if entry.is_empty() {
        return Ok(None);
    }
    ensure!(entry.starts_with("100"), "{path}: is no file in {commit}; put one in its place");
    git(folder, &["cat-file", "blob", &format!("{commit}:{path}")]).map(Some)
}

/// The commit checked out in `folder`, and whether its tracked files were changed; `None` if that is unknown.
pub fn checked_out(folder: &Path) -> (Option<String>, Option<bool>) {
    commit_by(|arguments| git(folder, arguments).ok())
}

/// The commit that `revision` names, in full.
pub fn commit_of(folder: &Path, revision: &str) -> Result<String> {
    let spec = format!("{revision}^{{commit}}");
    let found = git(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &spec]);
    progress::ensure_not_cancelled()?;
    found.ok().with_context(|| {
        format!("revision '{revision}' is not known here; commit or fetch it (a shallow clone has only its own)")
    })
}

/// Makes `folder` if it is missing, and has git ignore it then: files that a gate writes there are no change that the next gate has to look
/// at.
pub fn make_ignored(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let made = write_text(&folder.join(".gitignore"), "*\n");
    // A full disk costs no verdict.
    if folder.is_dir() { Ok(()) } else { made }
}

/// The files that differ from HEAD, staged or not, and those that git does not know and does not ignore, relative to the root.
pub fn uncommitted(folder: &Path) -> Result<Vec<String>> {
    let text = git(folder, &["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"])?;
    // `XY PATH` each.
    Ok(text.split('\0').filter_map(|entry| entry.get(3..)).map(str::to_owned).collect())
}

/// A submodule whose files were changed, or that is at another commit than HEAD has: a checkout elsewhere would lack that. Files that it
/// does not know, such as those of builds, are no change.
pub fn dirty_submodule(folder: &Path) -> Result<Option<String>> {
    // A submodule that is missing is missing in a checkout, too.
    let changed = git(folder, &["diff-index", "--diff-filter=d", "--ignore-submodules=untracked", "HEAD"])?;
    // `:160000 160000 ID ID M<tab>PATH`, where 160000 is a submodule's mode.
    let is_submodule = |line: &&str| line.get(..14).is_some_and(|modes| modes.contains("160000"));
    let dirty = changed.lines().find(is_submodule).and_then(|line| line.split_once('\t'));
    Ok(dirty.map(|(_, path)| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{git, make_ignored, reason, uncommitted};

    #[test]
    fn what_a_gate_leaves_is_no_change_but_where_somebody_keeps_files() {
        let place = tempfile::tempdir().expect("a folder");
        let [ours, kept] = ["ours", "kept"].map(|name| place.path().join(name));
        git(place.path(), &["init", "--quiet"]).expect("a repository");
        std::fs::create_dir(&kept).expect("a folder");
        for folder in [&ours, &kept] {
            make_ignored(folder).expect("made");
            std::fs::write(folder.join("paired.json"), "").expect("a file");
        }
        assert_eq!(uncommitted(place.path()).expect("files"), ["kept/paired.json"]);
    }

    #[test]
    fn of_what_git_says_its_first_error_and_its_last_line_are_shown() {
        let full = "Preparing worktree\nerror: unable to write file f2\nerror: unable to write file f3\n\
                    fatal: Could not reset index file to revision 'HEAD'.\n";
        assert_eq!(reason(full), "unable to write file f2; Could not reset index file to revision 'HEAD'");
        let owner = "fatal: detected dubious ownership in repository at '/r'\nTo add an exception for this directory, call:\n\n\
                     \tgit config --global --add safe.directory /r\n";
        let shown = "detected dubious ownership in repository at '/r'; git config --global --add safe.directory /r";
        assert_eq!(reason(owner), shown);
        assert_eq!(reason("fatal: not a git repository\n"), "not a git repository");
        assert_eq!(reason(""), "no reason given");
    }

    #[test]
    fn a_files_name_is_given_as_it_is() {
        let place = tempfile::tempdir().expect("a folder");
        git(place.path(), &["init", "--quiet"]).expect("a repository");
        std::fs::write(place.path().join("é.rs"), "").expect("a file");
        git(place.path(), &["add", "--all"]).expect("added");
        assert_eq!(git(place.path(), &["ls-files"]).expect("files"), "é.rs");
    }

    #[test]
    fn the_name_of_a_folder_may_end_in_a_space() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("it ");
        std::fs::create_dir(&folder).expect("a folder");
        git(&folder, &["init", "--quiet"]).expect("a repository");
        assert!(git(&folder, &["rev-parse", "--show-toplevel"]).expect("a folder").ends_with("/it "));
    }
}
