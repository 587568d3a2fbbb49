//! git: one command, one answer.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::progress;
use super::run_captured::run_captured;
use infergate_core::build_info::git_command;

/// Runs `git -C folder ARGUMENTS` and gives its stdout without its last line's end. A folder's name can end in a space.
pub fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    Ok(String::from_utf8_lossy(&stdout(folder, arguments)?).trim_end_matches(['\n', '\r']).to_owned())
}

/// The same with `index` in place of the repository's own.
pub fn with_index(index: &Path, folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut git = git_command(folder);
    git.env("GIT_INDEX_FILE", index);
    Ok(String::from_utf8_lossy(&stdout_of(git, arguments)?).trim_end().to_owned())
}

fn stdout(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    stdout_of(git_command(folder), arguments)
}

fn stdout_of(mut git: Command, arguments: &[&str]) -> Result<Vec<u8>> {
    git.args(arguments);
    let output = run_captured(git)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("git {}: {}", arguments.first().unwrap_or(&""), reason(&stderr));
    }
    Ok(output.stdout)
}

/// Of git's stderr, its first error, which is the reason, and its last line, which is what came of it or what to do.
fn reason(stderr: &str) -> String {
    fn error(line: &str) -> Option<&str> {
        ["fatal: ", "error: "].into_iter().find_map(|word| line.strip_prefix(word))
    }
    let plain = |line: &str| error(line).unwrap_or(line).trim().trim_end_matches('.').to_owned();
    let lines = || stderr.lines().filter(|line| !line.trim().is_empty());
    let first = lines().find(|line| error(line).is_some()).map(plain);
    let last = lines().next_back().map(plain);
    match (first, last) {
        (Some(first), Some(last)) if first != last => format!("{first}; {last}"),
        (_, last) => last.unwrap_or_else(|| "no reason given".into()),
    }
}

/// The text of the file `path`, counted from the root, as `commit` has it; `None` where it has none.
pub fn file_of(folder: &Path, commit: &str, path: &str) -> Result<Option<String>> {
    // `100644 blob ID<tab>PATH`; a link has another mode.
    let entry = git(folder, &["ls-tree", "--full-tree", commit, "--", &format!(":(literal){path}")])?;
    if entry.is_empty() {
        return Ok(None);
    }
    ensure!(entry.starts_with("100"), "{path}: is no file in {commit}; put one in its place");
    let text = String::from_utf8(stdout(folder, &["cat-file", "blob", &format!("{commit}:{path}")])?).ok();
    text.map(Some).with_context(|| format!("{path}: cannot be read as text; is this another file?"))
}

/// The commit that `revision` names, in full.
pub fn commit_of(folder: &Path, revision: &str) -> Result<String> {
    let spec = format!("{revision}^{{commit}}");
    let found = git(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &spec]);
    progress::ensure_not_cancelled()?;
    found.ok().with_context(|| {
        if git(folder, &["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
            return "this repository has no commit yet; commit what head is to be compared with".to_owned();
        }
        format!("revision '{revision}' is not known here; fetch it first (a shallow clone has only its own), or name another")
    })
}

/// Makes `folder` where it is missing, and lets git ignore one that is made here: what a gate writes there is no change that the next one has
/// to look at.
pub fn make_ignored(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    let mark = folder.join(".gitignore");
    // A full disk costs no verdict.
    if fs::write(&mark, "*\n").is_err() {
        let _ = fs::remove_file(&mark);
    }
    Ok(())
}

/// The files that differ from HEAD, staged or not, and those that git does not know and does not ignore, counted from the root.
pub fn uncommitted(folder: &Path) -> Result<Vec<String>> {
    let arguments = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"];
    let text =
        String::from_utf8(stdout(folder, &arguments)?).context("a file's name is not UTF-8; rename or ignore it")?;
    // `XY PATH` each.
    Ok(text.split('\0').filter_map(|entry| entry.get(3..)).map(str::to_owned).collect())
}

/// A submodule whose files were changed, or that is at another commit than the one that is committed: its checkout elsewhere would not
/// have them.
pub fn dirty_submodule(folder: &Path) -> Result<Option<String>> {
    let status = git(folder, &["status", "--porcelain=v2", "--untracked-files=no", "--ignore-submodules=none"])?;
    // "1 .M SCMU ..." is a changed entry; the third field begins with S for a submodule, C another commit, M changes, U untracked files.
    let dirty = status.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let kind = fields.next()?;
        // `M.` and the like: staged.
        let is_staged = !fields.next()?.starts_with('.');
        let state = fields.next().filter(|state| state.starts_with('S'))?;
        let is_dirty = is_staged || state.contains(['C', 'M', 'U']);
        let path = fields.nth(if kind == "2" { 6 } else { 5 })?;
        is_dirty.then(|| path.to_owned())
    });
    Ok(dirty)
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
