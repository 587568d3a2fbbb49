//! What was built and from what, for the receipt: compiler, flags, target, and the commit of the working tree.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::receipt::Build;

/// The build of this library, as cargo made it. Commit and dirty are `None`: they belong to a folder, see [`git`]; the
/// hash belongs to a file.
pub fn build() -> Build {
    Build {
        rustc: env!("INFERGATE_RUSTC").to_owned(),
        flags: env!("INFERGATE_FLAGS").to_owned(),
        opt_level: env!("INFERGATE_OPT_LEVEL").to_owned(),
        target: env!("INFERGATE_TARGET").to_owned(),
        ..Build::default()
    }
}

/// Whether this library came from a registry.
pub fn is_packed() -> bool {
    env!("INFERGATE_IS_PACKED") == "true"
}

/// The commit checked out in `folder` (40 or 64 hex digits), and whether its tracked files were changed. Untracked files,
/// such as receipts, do not count. `None` outside git, without git, or before the first commit.
pub fn git(folder: &Path) -> (Option<String>, Option<bool>) {
    commit_by(|arguments| {
        let output = git_command(folder).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    })
}

/// As [`git`], from what `git` prints; `None` where it fails.
pub fn commit_by(git: impl Fn(&[&str]) -> Option<String>) -> (Option<String>, Option<bool>) {
    let commit = git(&["rev-parse", "--verify", "HEAD"]).map(|text| text.trim().to_owned());
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).map(|text| !text.trim().is_empty());
    (commit, dirty)
}

/// What git is told each time. Nothing that a repository's configuration asks it to start beside itself: hooks (`core.hooksPath` may point
/// into the tracked files, which a pull request changes), a file watcher, a signature check. Paths as they are, not in quotes. And nothing of
/// submodules that was not asked for: git fails where a checkout does not have them yet.
const SETTINGS: [&str; 10] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "submodule.recurse=false",
];

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

/// git for the repository that `folder` is in, without an input: neither it nor ssh asks a question in the terminal. It takes no lock that a
/// `git commit` next door needs, and speaks English.
pub fn git_command(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(SETTINGS).arg("-C").arg(folder).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null());
    git.env("GIT_TERMINAL_PROMPT", "0").env("SSH_ASKPASS_REQUIRE", "force");
    for name in OF_A_HOOK {
        git.env_remove(name);
    }
    git
}
