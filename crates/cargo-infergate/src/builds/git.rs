//! git, asked in one line and answered in one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Runs `git -C folder ARGUMENTS` and gives its stdout without its last line's end. A folder's name can end in a space.
pub fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    Ok(String::from_utf8_lossy(&said(folder, arguments)?).trim_end_matches(['\n', '\r']).to_owned())
}

fn said(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = command(folder, arguments)
        .stdin(Stdio::null())
        .output()
        .context("git cannot be started; install it, or give --base-bin and --head-bin")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
        bail!("git {}: {}", arguments.first().unwrap_or(&""), last.trim_start_matches("fatal: ").trim());
    }
    Ok(output.stdout)
}

/// The text of the file `path`, counted from the root, as `commit` has it; `None` where it has none.
pub fn file_of(folder: &Path, commit: &str, path: &str, max_bytes: u64) -> Result<Option<String>> {
    let entry = git(folder, &["ls-tree", "--full-tree", "--long", commit, "--", &format!(":(literal){path}")])?;
    if entry.is_empty() {
        return Ok(None);
    }
    // `100644 blob ID SIZE<tab>PATH`
    let fields: Vec<&str> = entry.split_whitespace().take(4).collect();
    let [mode, "blob", id, size] = fields[..] else { bail!("{path}: is no file in {commit}; make it one") };
    ensure!(mode != "120000", "{path}: is a link in {commit}; put a file in its place");
    let bytes: u64 = size.parse().with_context(|| format!("{path}: git does not say its size"))?;
    ensure!(
        bytes <= max_bytes,
        "{path}: {bytes} bytes are too many, at most {max_bytes} are read; is this another file?"
    );
    let text = String::from_utf8(said(folder, &["cat-file", "blob", id])?).ok();
    text.map(Some).with_context(|| format!("{path}: cannot be read as text; is this another file?"))
}

/// Nothing that a repository's configuration asks git to start beside itself: hooks (`core.hooksPath` may point into the
/// tracked files, which a pull request changes), a file watcher, a signature check.
const NO_PROGRAMS: [&str; 6] =
    ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"];

/// Variables that a git hook sets: they would send every command back to the hook's repository. The last four change what a path
/// means; one that starts git can set them, and its hooks get them.
const OF_A_HOOK: [&str; 10] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// Without [those](OF_A_HOOK).
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(NO_PROGRAMS).arg("-C").arg(folder).args(arguments).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
    for name in OF_A_HOOK {
        git.env_remove(name);
    }
    git
}

/// The commit that `revision` names, in full.
pub fn commit_of(folder: &Path, revision: &str) -> Result<String> {
    let spec = format!("{revision}^{{commit}}");
    git(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &spec]).ok().with_context(|| {
        if git(folder, &["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
            return "this repository has no commit yet; commit what head is to be compared with".to_owned();
        }
        format!("revision '{revision}' is not known here; fetch it first (a shallow clone has only its own), or name another")
    })
}

/// Makes `folder` where it is missing, and lets git ignore it unless somebody keeps files in it: what a gate writes there is no change that
/// the next one has to look at.
pub fn hide(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    let mark = folder.join(".gitignore");
    let is_ignored = || git(folder, &["check-ignore", "--quiet", "paired.json"]).is_ok();
    let is_kept = || git(folder, &["ls-files"]).map_or(true, |files| !files.is_empty());
    if mark.exists() || is_ignored() || is_kept() {
        return Ok(());
    }
    fs::write(&mark, "*\n").with_context(|| format!("{}: cannot be written", mark.display()))
}

/// The files that differ from HEAD, staged or not, and those that git does not know and does not ignore, counted from the root.
pub fn uncommitted(folder: &Path) -> Result<Vec<String>> {
    let arguments = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"];
    let text =
        String::from_utf8(said(folder, &arguments)?).context("a file's name is not UTF-8; rename or ignore it")?;
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
    use super::{git, hide, uncommitted};

    #[test]
    fn what_a_gate_leaves_is_no_change_but_where_somebody_keeps_files() {
        let place = tempfile::tempdir().expect("a folder");
        let [ours, kept] = ["ours", "kept"].map(|name| place.path().join(name));
        git(place.path(), &["init", "--quiet"]).expect("a repository");
        for folder in [&ours, &kept] {
            std::fs::create_dir(folder).expect("a folder");
            std::fs::write(folder.join("paired.json"), "").expect("a file");
        }
        git(place.path(), &["add", "kept"]).expect("added");
        [&ours, &kept].into_iter().for_each(|folder| hide(folder).expect("hidden"));
        assert_eq!(uncommitted(place.path()).expect("files"), ["kept/paired.json"]);
        assert!(!kept.join(".gitignore").exists());
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
