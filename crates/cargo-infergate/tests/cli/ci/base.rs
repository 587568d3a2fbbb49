//! `gate/base.sh`: what a pull request is compared with, and by which name its build is kept.

use std::collections::BTreeSet;
use std::process::Command;

use crate::ci::place::{Place, assert_refused, stderr, stdout};

/// The commit and the key that it prints.
fn base(mut sh: Command) -> (String, String) {
    let output = sh.output().expect("sh");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let (commit, key) = text.trim_end().split_once("\nkey=").expect("two lines");
    (commit.strip_prefix("commit=").expect("a commit").to_owned(), key.to_owned())
}

#[test]
fn it_is_the_commit_where_the_branch_left_its_target() {
    let (place, [first, second, third]) = Place::with_repository();
    place.git("work", &["tag", "v1", &second]);
    // The target went on meanwhile.
    place.git("work", &["checkout", "--quiet", "-b", "elsewhere", &first]);
    let target = place.commit("work", "what the branch does not have");
    place.git("work", &["update-ref", "refs/remotes/origin/main", &target]);
    place.git("work", &["checkout", "--quiet", "work"]);

    let github = ("GITHUB_BASE_REF", "main");
    let started = ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &*first);
    for (variables, expected) in [
        (vec![], &second),
        (vec![github], &first),
        (vec![("GITHUB_BASE_REF", "")], &second),
        (vec![started], &first),
        // GitLab gates the merge then, whose target it says.
        (vec![started, ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &*second)], &second),
        (vec![("GATE_SAVES", "true"), github], &third),
        (vec![("GATE_SAVES", "false"), github], &first),
        (vec![("GATE_AGAINST", "v1"), ("GATE_SAVES", "true"), github], &second),
        (vec![("GATE_AGAINST", "elsewhere")], &first),
    ] {
        let mut sh = place.script("gate/base.sh");
        sh.envs(variables.iter().copied());
        let (commit, _) = base(sh);
        assert_eq!(&commit, expected, "{variables:?}");
    }
}

/// As one that another user owns.
#[test]
fn a_checkout_that_git_does_not_read_is_none_without_its_history() {
    let (place, _) = Place::with_repository();
    place.git("work", &["config", "core.repositoryFormatVersion", "99"]);
    let refused = place.script("gate/base.sh").env("GATE_AGAINST", "work").output().expect("sh");
    let said = stderr(&refused);
    let is_one_line = said.trim_end().lines().count() == 1;
    assert!(is_one_line && said.starts_with("error: git does not read this checkout: fatal: "), "{said}");
}

#[test]
fn a_revision_that_is_not_known_is_one_line() {
    let (place, _) = Place::with_repository();
    place.git("work", &["checkout", "--quiet", "--orphan", "alone"]);
    let other = place.commit("work", "nothing in common");
    place.git("work", &["checkout", "--quiet", "work"]);
    let mend = "check out the whole history (fetch-depth: 0, GIT_DEPTH: \"0\")";
    for against in ["nowhere", "--all", "-x", "$(touch evil)"] {
        let refused = place.script("gate/base.sh").env("GATE_AGAINST", against).output().expect("sh");
        assert_refused(&refused, &format!("error: the revision '{against}' is not known here; {mend}"));
    }
    let refused = place.script("gate/base.sh").env("GATE_AGAINST", &other).output().expect("sh");
    assert_refused(&refused, &format!("error: HEAD and '{other}' have no commit in common; {mend}"));
    assert!(!place.path("work/evil").exists());
}

/// What cargo would build anew has another name.
#[test]
fn the_key_names_all_that_a_build_is_of() {
    let (place, [first, ..]) = Place::with_repository();
    place.write("work/Cargo.lock", "one");
    for folder in ["member", "other"] {
        place.write(&format!("work/{folder}/Cargo.toml"), "");
    }
    let key = |place: &Place, folder: &str, against: &str| {
        let mut sh = place.script("gate/base.sh");
        sh.current_dir(place.path(folder)).env("GATE_AGAINST", against);
        base(sh).1
    };
    let mut keys = vec![key(&place, "work", "HEAD")];
    assert_eq!(keys[0], key(&place, "work", "HEAD"));
    keys.push(key(&place, "work", &first));
    keys.push(key(&place, "work/member", "HEAD"));
    keys.push(key(&place, "work/other", "HEAD"));
    // The workspace's is the member's, too, and a package can have one of its own.
    place.write("work/Cargo.lock", "two");
    keys.push(key(&place, "work", "HEAD"));
    keys.push(key(&place, "work/member", "HEAD"));
    place.write("work/member/Cargo.lock", "three");
    keys.push(key(&place, "work/member", "HEAD"));
    place.write("rustc.txt", "rustc 1.96.0\n");
    keys.push(key(&place, "work", "HEAD"));
    // What was compiled for the machine that saved it would run on another one.
    place.write("processor.txt", "znver4\n");
    keys.push(key(&place, "work", "HEAD"));
    place.program("bin/uname", "#!/bin/sh\ncase $1 in -s) echo Linux ;; -m) echo aarch64 ;; esac\n");
    keys.push(key(&place, "work", "HEAD"));
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{keys:?}");
    // What GitHub takes for a key.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    assert!(keys.iter().all(|key| key.len() < 512 && key.starts_with("infergate-base-") && key.chars().all(is_plain)));
}
