//! `init`, and what git says of the repository.

use std::fs;

use crate::init::{MANIFEST, package};
use crate::revisions::{commit, git};
use crate::sandbox::{error, stdout};

/// Git's own first branch is often master, and a team's is whatever it likes.
#[test]
fn what_is_compared_with_is_the_branch_that_changes_are_merged_into() {
    let sandbox = package(MANIFEST);
    git(&sandbox, &["checkout", "--quiet", "-B", "trunk"]);
    let shown = stdout(&sandbox.run(&["init", "--from=9.8.7"]).success());
    assert!(shown.contains("cargo infergate gate --against trunk"), "{shown}");
    let workflow = fs::read_to_string(sandbox.path(".github/workflows/infergate.yml")).expect("a workflow");
    assert!(workflow.contains("branches: ['trunk']"), "{workflow}");
    for name in ["master", "main"] {
        let sandbox = package(MANIFEST);
        git(&sandbox, &["checkout", "--quiet", "-B", name]);
        commit(&sandbox, "text", "", "first");
        git(&sandbox, &["checkout", "--quiet", "-b", "mine"]);
        let shown = stdout(&sandbox.run(&["init", "--dry-run", "--from=9.8.7"]).success());
        assert!(shown.contains(&format!("gate --against {name}\n")), "{shown}");
        assert!(shown.contains("branches: [main, master]"), "{shown}");
    }
}

/// As one of another owner.
#[test]
fn a_repository_that_git_does_not_read_is_none_to_make_anew() {
    let sandbox = package(MANIFEST);
    sandbox.write(".git/config", "[core]\nrepositoryformatversion = 99\n");
    let line = error(sandbox.run(&["init", "--from=9.8.7"]));
    assert!(line.contains("Expected git repo version"), "{line}");
    assert!(!sandbox.path("benches").exists());
}
