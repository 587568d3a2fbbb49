//! `action.yml`: its steps in a job on a pull request, and in one of the default branch.

use crate::ci::place::Place;
use crate::ci::steps::Job;

/// What was used of other actions, by name.
fn used<'a>(job: &'a Job<'_>) -> Vec<&'a str> {
    job.used.iter().map(|(name, _)| name.as_str()).collect()
}

const RESTORE: &str = "actions/cache/restore";
const SAVE: &str = "actions/cache/save";
const KEEP: &str = "actions/upload-artifact";

/// A job in a repository whose branch left `origin/main` at its first commit.
fn on_pull_request<'a>(place: &'a Place, inputs: &[(&str, &str)]) -> Job<'a> {
    let mut job = Job::new(place, "");
    job.set(inputs);
    job.run(".");
    job
}

#[test]
fn a_pull_request_is_gated_and_its_files_are_kept_whatever_the_verdict() {
    let (place, [first, second, _]) = Place::with_repository();
    for (code, failed) in [("0", None), ("1", Some(1)), ("3", Some(3))] {
        place.write("code.txt", code);
        let job = on_pull_request(&place, &[]);
        assert_eq!(job.failed, failed, "{}", job.said);
        // Never what a pull request built.
        assert_eq!(used(&job), [RESTORE, KEEP]);
        let (restored, kept) = (&job.used[0].1, &job.used[1].1);
        assert!(restored["key"].contains(&second), "{restored:?}");
        assert_eq!(restored["path"], place.path("runner/infergate-base/base").to_string_lossy());
        assert_eq!((&*kept["name"], &*kept["path"]), ("gate", "./target/gate"));
        assert_eq!(place.gate_words()[..4], ["infergate", "gate", "--against", &*second]);
        assert!(place.read("summary.md").ends_with("the verdict in words\n"));
    }
    let job = on_pull_request(&place, &[("inputs.against", "origin/main"), ("inputs.artifact-name", "other")]);
    assert_eq!(place.gate_words()[3], first);
    assert_eq!(job.used[1].1["name"], "other");
}

#[test]
fn only_a_push_to_the_default_branch_saves_what_it_built() {
    let (place, [_, _, third]) = Place::with_repository();
    let on = |event: &str, name: &str, hit: &str| {
        let mut job = Job::new(&place, "");
        job.set(&[("github.event_name", event), ("github.ref", name), ("steps.restore.outputs.cache-hit", hit)]);
        job.run(".");
        job
    };
    let job = on("push", "refs/heads/main", "");
    assert_eq!(used(&job), [RESTORE, SAVE, KEEP], "{}", job.said);
    assert_eq!(job.used[0].1, job.used[1].1);
    // By the name under which a pull request that starts from it will ask.
    assert!(job.used[1].1["key"].contains(&third) && place.gate_words()[3] == third);
    for (event, name, hit) in [
        ("push", "refs/heads/main", "true"),
        ("push", "refs/heads/maintenance", ""),
        ("push", "refs/tags/main", ""),
        ("pull_request", "refs/heads/main", ""),
        ("pull_request_target", "refs/heads/main", ""),
        ("workflow_dispatch", "refs/heads/main", ""),
    ] {
        assert_eq!(used(&on(event, name, hit)), [RESTORE, KEEP], "{event} {name} {hit}");
    }
    // A build that failed its gate is not worth it.
    place.write("code.txt", "2");
    assert_eq!(used(&on("push", "refs/heads/main", "")), [RESTORE, KEEP]);
}

/// Inputs are text for each step, whatever is in them.
#[test]
fn what_an_input_says_is_never_run() {
    let (place, _) = Place::with_repository();
    let evil = "$(touch evil)`touch evil`\"; touch evil; '; touch evil; ${{ github.token }}";
    place.write("work/a b;touch evil/Cargo.toml", "");
    let inputs =
        [("inputs.arguments", evil), ("inputs.working-directory", "a b;touch evil"), ("inputs.artifact-name", evil)];
    let job = on_pull_request(&place, &inputs);
    assert_eq!(job.failed, None, "{}", job.said);
    assert_eq!(place.gate_words().last().map(String::as_str), Some(evil));
    assert_eq!(place.read("gate-folder.txt").trim(), place.path("work/a b;touch evil").to_string_lossy());
    let job = on_pull_request(&place, &[("inputs.against", evil)]);
    assert_eq!((job.failed, used(&job)), (Some(2), vec![KEEP]), "{}", job.said);
    for folder in ["", "work/", "work/a b;touch evil/", "runner/"] {
        assert!(!place.path(&format!("{folder}evil")).exists(), "{folder}");
    }
}

/// Has no tags, and is git elsewhere.
const GIT: &str = r#"#!/bin/sh
if [ "$1" = ls-remote ]; then echo "$@" >> "$HERE/asked.txt"; exit; fi
PATH=${PATH#*:}
exec git "$@"
"#;

/// It is asked for by the commit that the caller pinned; here that has no release.
#[test]
fn the_command_is_that_of_the_actions_own_revision() {
    let (place, _) = Place::with_repository();
    place.program("bin/git", GIT);
    let mut job = Job::new(&place, &"f".repeat(40));
    job.run(".");
    assert_eq!(job.failed, None, "{}", job.said);
    assert_eq!(place.read("asked.txt"), "ls-remote --tags -- https://github.com/infergate/infergate refs/tags/v*\n");
    assert!(place.read("cargo-variables.txt").contains(&format!("INFERGATE_COMMIT={}", "f".repeat(40))));
}
