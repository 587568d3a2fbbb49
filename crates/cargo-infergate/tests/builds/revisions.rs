//! `gate --against REV`: which commits are compared, and how they are checked out.

use std::fs;
use std::path::Path;

use crate::repositories::{commit, gate, git, repository};
use crate::sandbox::{error, stderr, stdout};

#[test]
fn commits_that_head_lacks_are_said() {
    let sandbox = repository();
    commit(&sandbox, "notes.txt", "of others", "others");
    git(&sandbox, &["branch", "others"]);
    git(&sandbox, &["reset", "--quiet", "--hard", "HEAD~1"]);
    let said = gate(&sandbox, "others", &[]).success();
    assert!(stdout(&said).contains("others has commits that head lacks (1)"), "{}", stdout(&said));
    let said = gate(&sandbox, "HEAD", &[]).success();
    assert!(!stdout(&said).contains("head lacks"), "{}", stdout(&said));
    // Where both have only their own commit, each seems to lack the other's.
    let [head, others] = ["HEAD", "others"].map(|name| git(&sandbox, &["rev-parse", name]));
    sandbox.write(".git/shallow", &format!("{head}{others}"));
    let said = gate(&sandbox, "others", &[]).success();
    assert!(!stdout(&said).contains("head lacks"), "{}", stdout(&said));
}

/// What the working tree has of a submodule is not fetched again from where it came from: git fetches none from a folder unless it is
/// told to.
#[test]
fn a_submodule_is_taken_from_the_working_tree() {
    let sandbox = repository();
    let other = repository();
    git(&sandbox, &["submodule", "--quiet", "add", &other.path("").to_string_lossy(), "vendored"]);
    git(&sandbox, &["commit", "--quiet", "-m", "vendored"]);
    commit(&other, "engine.rs", "pub const MORE: u64 = 1;\n", "more");
    sandbox.write("vendored/made.o", "what a build left");
    // Whatever git is told to do with submodules by itself.
    git(&sandbox, &["config", "submodule.recurse", "true"]);
    gate(&sandbox, "HEAD", &[]).success();
    git(&sandbox, &["config", "--unset", "submodule.recurse"]);
    let kept = git(&sandbox, &["-C", "cache/base/tree/vendored", "config", "remote.origin.url"]);
    assert_eq!(kept.trim().trim_end_matches('/'), other.path("").to_string_lossy().trim_end_matches('/'));

    // A commit that only the other repository has.
    let commit = git(&other, &["rev-parse", "HEAD"]);
    git(&sandbox, &["update-index", "--cacheinfo", &format!("160000,{},vendored", commit.trim())]);
    git(&sandbox, &["commit", "--quiet", "-m", "another"]);
    git(&sandbox, &["checkout", "--quiet", "-b", "here", "HEAD~1"]);
    let said = stderr(&gate(&sandbox, "main", &[]).code(2));
    assert!(said.contains("revision 'main': its submodules cannot be fetched"), "{said}");
}

/// Git's own rule: a revision that others wrote would else copy any repository of this machine into the checkout.
#[test]
fn a_submodule_that_the_working_tree_lacks_comes_from_no_folder() {
    let sandbox = repository();
    let other = repository();
    let named = format!("[submodule \"vendored\"]\n\tpath = vendored\n\turl = {}\n", other.path("").display());
    sandbox.write(".gitmodules", &named);
    let known = git(&other, &["rev-parse", "HEAD"]);
    git(&sandbox, &["add", ".gitmodules"]);
    git(&sandbox, &["update-index", "--add", "--cacheinfo", &format!("160000,{},vendored", known.trim())]);
    git(&sandbox, &["commit", "--quiet", "-m", "vendored"]);
    git(&sandbox, &["checkout", "--quiet", "-b", "here", "HEAD~1"]);
    let said = stderr(&gate(&sandbox, "main", &[]).code(2));
    assert!(said.contains("revision 'main': its submodules cannot be fetched"), "{said}");
}

#[test]
fn a_checkout_that_would_inherit_heads_flags_is_refused() {
    let sandbox = repository();
    sandbox.write(".cargo/config.toml", "[build]\nrustflags = ['--cfg', 'head']\n");
    let line = error(gate(&sandbox, "HEAD", &[]));
    assert!(line.contains("whose .cargo/config.toml would join the revision's own"), "{line}");
}

#[test]
fn a_killed_checkout_is_mended() {
    let sandbox = repository();
    gate(&sandbox, "HEAD", &[]).success();
    fs::remove_file(sandbox.path("cache/base/tree/.git")).expect("a worktree's mark");
    gate(&sandbox, "HEAD", &[]).success();
    assert!(Path::new(&sandbox.path("cache/base/tree/.git")).exists());
}
