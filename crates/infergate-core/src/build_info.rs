//! What was built and from what, for the receipt: compiler, flags, target, and the commit of the working tree.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::receipt::Build;

/// The build of this library, as cargo made it. Commit and dirty are `None`: they belong to a folder, see [`git`]; the
/// hash belongs to a file.
pub fn build() -> Build {
    Build {
        commit: None,
        dirty: None,
        rustc: env!("INFERGATE_RUSTC").to_owned(),
        flags: env!("INFERGATE_FLAGS").to_owned(),
        opt_level: env!("INFERGATE_OPT_LEVEL").to_owned(),
        target: env!("INFERGATE_TARGET").to_owned(),
        worker_sha256: None,
    }
}

/// The commit checked out in `folder` (40 or 64 hex digits), and whether its tracked files were changed. Untracked files,
/// such as receipts, do not count. `None` outside git, without git, or before the first commit.
pub fn git(folder: &Path) -> (Option<String>, Option<bool>) {
    let commit = run_git(folder, &["rev-parse", "--verify", "HEAD"])
        .map(|text| text.trim().to_owned())
        .filter(|hash| hash.len() >= 40 && hash.chars().all(|c| c.is_ascii_hexdigit()));
    let dirty = run_git(folder, &["status", "--porcelain", "--untracked-files=no"]).map(|text| !text.trim().is_empty());
    (commit, dirty)
}

fn run_git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        // No file watcher that the repository's configuration names: asking starts nothing else.
        .args(["-c", "core.fsmonitor=false", "-C"])
        .arg(folder)
        .args(arguments)
        // Asking must not take the lock that a `git commit` next door needs.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
