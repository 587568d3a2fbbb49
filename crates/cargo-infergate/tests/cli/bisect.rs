//! `bisect`, in small git repositories whose bench target is a worker without any dependency.

use assert_cmd::assert::Assert;

use crate::revisions::{commit, git, left_behind, repository, run};
use crate::sandbox::{Sandbox, decision, error, stdout};

fn bisect(sandbox: &Sandbox, good: &str, bad: &str) -> Assert {
    run(sandbox, &["bisect", "--good", good, "--bad", bad, "--case", "decode/p8"])
}

/// `STEP_NS` of the engine, nanoseconds.
fn engine(sandbox: &Sandbox, step_ns: u64, subject: &str) {
    commit(sandbox, "engine.rs", &format!("pub const STEP_NS: u64 = {step_ns};\n"), subject);
}

#[test]
fn a_bisection_names_the_first_slower_commit_and_skips_what_does_not_build() {
    let sandbox = repository();
    let good = git(&sandbox, &["rev-parse", "HEAD"]);
    commit(&sandbox, "notes.txt", "1", "harmless");
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_000_000\n", "broken");
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_000_001;\n", "mended");
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_200_000;\n", "slower");
    commit(&sandbox, "notes.txt", "2", "after");
    let before = left_behind(&sandbox);
    let said = bisect(&sandbox, good.trim(), "HEAD").success();
    let report = stdout(&said);
    assert!(decision(&said).starts_with("first slower commit: ") && decision(&said).ends_with(" slower"), "{report}");
    assert!(report.contains("+20.0 % (+19.9 % to +20.1 %)"), "each step has its interval: {report}");
    assert_eq!(left_behind(&sandbox), before);
    assert_eq!(git(&sandbox, &["branch", "--show-current"]).trim(), "main");
}

#[test]
fn a_bisection_between_equals_finds_nothing() {
    let sandbox = repository();
    commit(&sandbox, "notes.txt", "1", "harmless");
    let said = bisect(&sandbox, "HEAD~1", "HEAD").code(3);
    assert!(stdout(&said).contains("not shown to be slower"), "{}", stdout(&said));
    let arguments = ["bisect", "--good=HEAD~1", "--bad=HEAD", "--case=decode/p8", "--json=-"];
    let found: serde_json::Value =
        serde_json::from_str(&stdout(&run(&sandbox, &arguments).code(3))).expect("JSON alone");
    assert_eq!((&found["end"]["kind"], &found["searched"]), (&"not_slower".into(), &"commit".into()), "{found}");
    assert!(found["steps"][0]["name"].as_str().is_some_and(|name| name.ends_with(" harmless")), "{found}");
    let line = error(bisect(&sandbox, "HEAD", "HEAD"));
    assert!(line.contains("are the same commit"), "{line}");
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
    let line = error(bisect(&sandbox, "fixed", "HEAD"));
    assert!(line.contains("part at") && line.contains("which is slower already"), "{line}");

    git(&sandbox, &["checkout", "--quiet", "--orphan", "elsewhere"]);
    git(&sandbox, &["commit", "--quiet", "-m", "no parent"]);
    let line = error(bisect(&sandbox, "fixed", "main~1"));
    assert!(line.contains("part at"), "{line}");
    let line = error(bisect(&sandbox, "fixed", "HEAD"));
    assert!(line.contains("no commit in common"), "{line}");
}

/// A `git` in front of the real one that does `instead` for the subcommands that match `pattern`; in it, `real` is the real
/// one with the same arguments.
#[cfg(unix)]
fn bisect_with_another_git(sandbox: &Sandbox, good: &str, pattern: &str, instead: &str) -> Assert {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").expect("a PATH");
    let real = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file()).expect("git");
    let script = format!(
        "#!/bin/sh\nreal() {{ '{}' \"$@\"; }}\ncase \" $* \" in {pattern}) {instead}; exit;; esac\nreal \"$@\"\n",
        real.display()
    );
    let other = sandbox.write("target/bin/git", &script);
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let folders = [sandbox.path("target/bin")].into_iter().chain(std::env::split_paths(&path));
    let mut process = sandbox.process(&["bisect", "--good", good, "--bad", "HEAD", "--case", "decode/p8"]);
    // As somebody names a folder beside the repository by `..`.
    process.args(["--model=m", "--threads=1", "--base-folder=.git/../cache"]);
    process.env("PATH", std::env::join_paths(folders).expect("a PATH"));
    assert_cmd::Command::from_std(process).assert()
}

#[cfg(unix)]
#[test]
fn a_git_that_says_it_in_other_words_changes_nothing() {
    let sandbox = repository();
    commit(&sandbox, "notes.txt", "1", "harmless");
    engine(&sandbox, 1_200_000, "slower");
    commit(&sandbox, "notes.txt", "2", "after");
    let wording = r#"echo "you need to say 'bad' and 'good' first"; echo "fatal: 'bad'" >&2; false"#;
    let said = bisect_with_another_git(&sandbox, "HEAD~3", "*' bisect '*", wording).success();
    assert!(decision(&said).ends_with(" slower"), "{}", stdout(&said));
    // Decorations come between commit and distance.
    let said = bisect_with_another_git(&sandbox, "HEAD~3", "*' rev-list '*", r#"real "$@" | sed 's/(/(HEAD, /'"#);
    assert!(decision(&said).ends_with(" slower"), "{}", stdout(&said));
}

#[cfg(unix)]
#[test]
fn a_git_that_does_not_get_on_ends_the_search_with_one_line() {
    let sandbox = repository();
    for n in 1..=3 {
        commit(&sandbox, "notes.txt", &n.to_string(), "harmless");
    }
    engine(&sandbox, 1_200_000, "slower");
    let same = r#"[ -f "$0.said" ] || real "$@" > "$0.said"; cat "$0.said""#;
    let line = error(bisect_with_another_git(&sandbox, "HEAD~4", "*' rev-list '*", same));
    assert!(line.contains("again, which was tried already"), "{line}");
    let line = error(bisect_with_another_git(&sandbox, "HEAD~4", "*' rev-list '*", "echo '--all the commits'"));
    assert!(line.contains("git names '--all' where a commit was expected"), "{line}");
    let line = error(bisect_with_another_git(&sandbox, "HEAD~4", "*' merge-base '*", "exit 1"));
    assert!(line.contains("no commit in common that git can find"), "{line}");
}

#[test]
fn a_case_is_one_of_ours_or_a_bench_by_its_name() {
    let sandbox = repository();
    commit(&sandbox, "notes.txt", "1", "harmless");
    let asked = |case: &str| run(&sandbox, &["bisect", "--good=HEAD~1", "--bad=HEAD", "--case", case]);
    for slip in ["decode/128", "generate/p8", "decode"] {
        assert!(error(asked(slip)).contains("is not a case id; write prefill/p128"), "{slip}");
    }
    // The repository's worker has no benches, so that no step can be measured.
    let said = stdout(&asked("fib/20").code(3));
    assert!(said.contains("fib/20"), "{said}");
}
