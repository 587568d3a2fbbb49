//! Copies what is not committed into a checkout of HEAD.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::git::{git, uncommitted, with_index};

/// Size limit of uncommitted files: more is data that should be ignored.
const MAX_BYTES: u64 = 1 << 30;

/// Makes the checkout `files` hold what the working tree `repository` holds, except what git ignores; both are at one commit. Gives whether
/// anything was not committed.
pub fn copy_uncommitted(repository: &Path, files: &Path) -> Result<bool> {
    let names = uncommitted(repository)?;
    let sizes = names.iter().filter_map(|name| repository.join(name).symlink_metadata().ok());
    ensure!(
        sizes.map(|file| file.len()).sum::<u64>() <= MAX_BYTES,
        "files that are not committed have more than {MAX_BYTES} bytes; commit or ignore them"
    );
    if names.is_empty() {
        return Ok(false);
    }
    // As `git add --all` and `git commit` would, with a copy of the index, so that nothing in the repository changes.
    let index = files.with_extension("index");
    let own = repository.join(git(repository, &["rev-parse", "--git-path", "index"])?);
    // By the index's time git knows which files were changed too soon after it to show a new time.
    fs::copy(&own, &index)
        .and_then(|_| File::options().write(true).open(&index)?.set_modified(own.metadata()?.modified()?))
        .context("git's index cannot be copied")?;
    with_index(&index, repository, &["add", "--all"])?;
    let tree = with_index(&index, repository, &["write-tree"])?;
    git(files, &["read-tree", "--reset", "-u", &tree]).context("head's files cannot be checked out")?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::git::git;
    use super::copy_uncommitted;

    /// Writes a file and sets its time to a while ago; without text only its time is set.
    fn set_time(path: &std::path::Path, text: &str) {
        let mut file = fs::File::options().create(true).append(true).open(path).expect("a file");
        if !text.is_empty() {
            file.set_len(0).expect("emptied");
            std::io::Write::write_all(&mut file, text.as_bytes()).expect("written");
        }
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        file.set_modified(time).expect("a time");
    }

    #[test]
    fn a_checkout_gets_what_is_not_committed_and_nothing_that_git_ignores() {
        let place = tempfile::tempdir().expect("a folder");
        let [from, to] = ["from", "to"].map(|name| place.path().join(name));
        fs::create_dir_all(from.join("data/deep")).expect("a folder");
        fs::write(from.join("data/deep/file"), "").expect("a file");
        fs::write(from.join(".gitignore"), "/ignored\n").expect("a file");
        set_time(&from.join("kept"), "one");
        git(&from, &["init", "--quiet"]).expect("a repository");
        git(&from, &["add", "--all"]).expect("added");
        let who = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        git(&from, &[&who[..], &["commit", "--quiet", "--message", "a folder"]].concat()).expect("committed");
        git(&from, &["worktree", "add", "--quiet", "--detach", &to.to_string_lossy()]).expect("a checkout");
        assert!(!copy_uncommitted(&from, &to).expect("nothing to lay"));
        fs::remove_dir_all(from.join("data")).expect("removed");
        for (name, text) in [("data", "a file"), ("new", "another"), ("ignored", "data")] {
            fs::write(from.join(name), text).expect("a file");
        }
        // Neither its size nor its time shows that it was changed, but that the index is not younger.
        set_time(&from.join("kept"), "two");
        set_time(&from.join(".git/index"), "");
        let before = git(&from, &["status", "--porcelain"]).expect("a status");
        assert!(copy_uncommitted(&from, &to).expect("laid"));
        assert_eq!(fs::read_to_string(to.join("data")).expect("a file"), "a file");
        assert_eq!(fs::read_to_string(to.join("new")).expect("a file"), "another");
        assert_eq!(fs::read_to_string(to.join("kept")).expect("a file"), "two");
        assert!(!to.join("ignored").exists());
        assert_eq!(
            git(&from, &["status", "--porcelain"]).expect("a status"),
            before,
            "the working tree stays as it is"
        );
    }
}
