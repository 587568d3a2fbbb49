//! `bisect`, in small git repositories whose bench target is a worker without any dependency.

use assert_cmd::assert::Assert;

#[cfg(unix)]
use crate::interrupt::signal;
use crate::repositories::{commit, git, repository, run};
use crate::sandbox::{Sandbox, decision, error, stdout};

fn bisect(sandbox: &Sandbox, good: &str, bad: &str) -> Assert {
    run(sandbox, &["bisect", "--good", good, "--bad", bad, "--case", "decode/p8"])
}

/// `STEP_NS` of the engine, nanoseconds.
fn engine(sandbox: &Sandbox, step_ns: u64, subject: &str) {
    commit(sandbox, "engine.rs", &format!("pub const STEP_NS: u64 = {step_ns};\n"), subject);
}

/// Each commit adds a little: the first that is slower than the good one by the limit did no more than the others.
#[test]
fn a_commit_is_named_only_where_it_is_slower_than_the_one_before_it() {
    let sandbox = repository();
    let good = git(&sandbox, &["rev-parse", "HEAD"]);
    for step_ns in [1_012_000, 1_024_000, 1_036_000] {
        engine(&sandbox, step_ns, "a little slower");
    }
    let said = bisect(&sandbox, good.trim(), "HEAD").code(3);
    let report = stdout(&said);
    assert!(decision(&said).starts_with("no single commit is slower than the one before it"), "{report}");
    assert!(report.contains(" a little slower, against the one before it"), "{report}");
    assert!(report.contains("+1.2 % ("), "{report}");
}

/// A branch that left before the good commit was made fast is slower, and no reason for what got slower later.
#[test]
fn a_branch_older_than_what_made_it_fast_is_not_at_fault() {
    let sandbox = repository();
    engine(&sandbox, 1_200_000, "slow");
    git(&sandbox, &["checkout", "--quiet", "-b", "branch"]);
    for n in 1..=5 {
        commit(&sandbox, "branch.txt", &n.to_string(), "on a branch");
    }
    git(&sandbox, &["checkout", "--quiet", "main"]);
    engine(&sandbox, 1_000_000, "fast");
    let good = git(&sandbox, &["rev-parse", "HEAD"]);
    git(&sandbox, &["merge", "--quiet", "--no-ff", "-m", "merged", "branch"]);
    engine(&sandbox, 1_300_000, "at fault");
    commit(&sandbox, "notes.txt", "1", "after");
    let said = bisect(&sandbox, good.trim(), "HEAD").success();
    assert!(decision(&said).ends_with(" at fault"), "{}", stdout(&said));
}

#[test]
fn a_commit_behind_one_that_cannot_be_built_is_one_of_several() {
    let sandbox = repository();
    let good = git(&sandbox, &["rev-parse", "HEAD"]);
    commit(&sandbox, "notes.txt", "1", "harmless");
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_200_000\n", "slower and broken");
    engine(&sandbox, 1_200_000, "mended");
    let said = bisect(&sandbox, good.trim(), "HEAD").code(3);
    let report = stdout(&said);
    assert!(report.contains("one of these") && report.contains("skipped: "), "{report}");
    // One that cannot be judged was not shown to be as fast as the good one.
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_000_000\n", "broken");
    let report = stdout(&bisect(&sandbox, good.trim(), "HEAD").code(3));
    assert!(report.contains("the bad commit could not be judged, so nothing was searched: "), "{report}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_says_what_is_left() {
    let sandbox = repository();
    let good = git(&sandbox, &["rev-parse", "HEAD"]);
    for n in 1..=3 {
        commit(&sandbox, "notes.txt", &n.to_string(), "harmless");
    }
    engine(&sandbox, 1_200_000, "slower");
    let mut search = sandbox.process(&["bisect", "--good", good.trim(), "--bad=HEAD", "--case=decode/p8"]);
    search.args(["--model=m", "--threads=1", "--base-folder=cache"]);
    let (code, said) = signal(search, &[("step 2: ", &|id| id.to_string())]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("interrupted; the first slower commit is one of these 4: "), "{said}");
    assert!(said.contains("+20.0 % (+19.9 to +20.1 %)"), "what was measured is shown: {said}");
}

#[test]
fn a_good_revision_on_another_branch_is_searched_from_where_they_part() {
    let sandbox = repository();
    git(&sandbox, &["checkout", "--quiet", "-b", "release"]);
    commit(&sandbox, "notes.txt", "release", "release");
    git(&sandbox, &["checkout", "--quiet", "main"]);
    commit(&sandbox, "notes.txt", "1", "harmless");
    engine(&sandbox, 1_200_000, "slower");
    let said = bisect(&sandbox, "release", "HEAD").success();
    assert!(decision(&said).ends_with(" slower"), "{}", stdout(&said));

    git(&sandbox, &["checkout", "--quiet", "-b", "fixed"]);
    engine(&sandbox, 1_000_000, "fast again");
    git(&sandbox, &["checkout", "--quiet", "main"]);
    commit(&sandbox, "notes.txt", "2", "still slow");
    let said = bisect(&sandbox, "fixed", "HEAD").code(3);
    assert!(decision(&said).contains("was not shown to be slower"), "where they part is as slow: {}", stdout(&said));

    git(&sandbox, &["checkout", "--quiet", "--orphan", "elsewhere"]);
    git(&sandbox, &["commit", "--quiet", "-m", "no parent"]);
    let line = error(bisect(&sandbox, "fixed", "main~1"));
    assert!(line.contains("has every commit of --bad"), "{line}");
    let line = error(bisect(&sandbox, "fixed", "HEAD"));
    assert!(line.contains("no commit in common"), "{line}");
}
