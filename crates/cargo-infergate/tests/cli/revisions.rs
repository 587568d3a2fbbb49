//! `gate --against REV`, in small git repositories whose bench target is a worker without any dependency.

use std::fs;
use std::path::Path;
use std::process::Command as Process;

use assert_cmd::assert::Assert;

use crate::sandbox::{Sandbox, decision, error, stderr, stdout};

/// A bench target that speaks the worker protocol with a made-up clock: STEP_NS is what its commit says.
pub const WORKER: &str = include_str!("worker_without_dependencies.rs");

pub const MANIFEST: &str = r#"
[package]
name = "engine"
version = "0.1.0"
edition = "2021"

[lib]
path = "engine.rs"
bench = false

[[bench]]
name = "inference"
path = "bench.rs"
harness = false
"#;

/// A sandbox that is a repository of git's own, without a commit.
pub fn empty_repository() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::remove_dir_all(sandbox.path(".git")).expect("the sandbox's own mark");
    git(&sandbox, &["init", "--quiet", "--initial-branch=main"]);
    sandbox
}

/// A repository with one commit: an engine that takes 1 ms a step.
pub fn repository() -> Sandbox {
    let sandbox = empty_repository();
    sandbox.write("Cargo.toml", MANIFEST);
    sandbox.write(".gitignore", "/target\n/cache\nCargo.lock\n");
    sandbox.write("bench.rs", WORKER);
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_000_000;\n", "first");
    sandbox
}

/// One whose worker has a single case, a bench called `long` that says nothing, and an engine that takes 9 ms for it.
pub fn repository_of_a_bench() -> Sandbox {
    const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let sandbox = repository();
    let of_tokens =
        WORKER.split_once("SHA256: &str = \"").and_then(|(_, rest)| rest.split_once('"')).expect("a hash").0;
    let worker =
        [("\"load_ns\":1", "\"load_ns\":1,\"benches\":[\"bench:long\"]"), ("[7,7]", "[]"), (of_tokens, OF_NOTHING)];
    let worker = worker.iter().fold(WORKER.to_owned(), |worker, (from, to)| {
        assert_eq!(worker.matches(from).count(), 1, "{from}");
        worker.replace(from, to)
    });
    sandbox.write("bench.rs", &worker);
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 9_000_000;\n", "a bench");
    sandbox
}

pub fn commit(sandbox: &Sandbox, file: &str, text: &str, subject: &str) {
    sandbox.write(file, text);
    git(sandbox, &["add", "--all"]);
    git(sandbox, &["commit", "--quiet", "--allow-empty", "-m", subject]);
}

pub fn git(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let mut git = Process::new("git");
    git.current_dir(sandbox.path("")).args(who).args(arguments);
    // Neither the user's settings nor the repository of a hook that runs this.
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    let output = git.env_remove("GIT_INDEX_FILE").output().expect("git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn run(sandbox: &Sandbox, arguments: &[&str]) -> Assert {
    let mut process = sandbox.process(arguments);
    process.args(["--model=m", "--threads=1", "--base-folder=cache"]);
    assert_cmd::Command::from_std(process).assert()
}

pub fn gate(sandbox: &Sandbox, revision: &str, arguments: &[&str]) -> Assert {
    run(sandbox, &[&["gate", "--against", revision, "--cases=decode/p8"], arguments].concat())
}

/// The working tree's status and its worktrees, which a gate must leave as they were.
pub fn left_behind(sandbox: &Sandbox) -> String {
    git(sandbox, &["status", "--porcelain"])
}

#[test]
fn a_slower_working_tree_is_regressed_against_its_own_commit_and_left_as_it_is() {
    let sandbox = repository();
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_050_000;\n");
    let before = left_behind(&sandbox);
    let said = gate(&sandbox, "HEAD", &[]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode 5.0 % slower"), "{}", stdout(&said));
    let commit = git(&sandbox, &["rev-parse", "HEAD"]);
    assert!(stdout(&said).contains(&format!("base {}, head {} with changes", &commit[..10], &commit[..10])));
    assert_eq!(left_behind(&sandbox), before);

    let said = gate(&sandbox, "HEAD", &[]).code(1);
    assert!(!stderr(&said).contains("Compiling"), "an unchanged tree is not built again: {}", stderr(&said));
}

#[test]
fn an_unchanged_tree_passes() {
    let sandbox = repository();
    commit(&sandbox, "notes.txt", "no code", "second");
    let said = gate(&sandbox, "HEAD~1", &[]).success();
    assert!(decision(&said).contains("verdict: pass (exit 0)"), "{}", stdout(&said));
}

#[test]
fn what_cannot_be_checked_out_is_said_before_anything_is_built() {
    let sandbox = repository();
    let line = error(gate(&sandbox, "no-such-branch", &[]));
    assert!(line.contains("revision 'no-such-branch' is not known here; fetch it"), "{line}");
    let line = error(gate(&sandbox, "HEAD:engine.rs", &[]));
    assert!(line.contains("is not known here"), "a file is no revision: {line}");
    let new = empty_repository();
    new.write("Cargo.toml", MANIFEST);
    new.write("engine.rs", "");
    new.write("bench.rs", WORKER);
    let line = error(gate(&new, "HEAD", &[]));
    assert!(line.contains("this repository has no commit yet"), "{line}");
    let outside = Sandbox::new();
    outside.write("Cargo.toml", MANIFEST);
    let line = error(gate(&outside, "HEAD", &[]));
    assert!(line.contains("--against needs a git repository"), "{line}");
}

#[test]
fn a_toolchain_that_is_not_installed_is_said_before_anything_is_built() {
    let sandbox = repository();
    let line = error(run(&sandbox, &["gate", "--toolchain", "no such"]));
    assert!(line.contains("--toolchain 'no such': there is none of this name"), "{line}");
}

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
    gate(&sandbox, "HEAD", &[]).success();
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

#[test]
fn a_base_that_does_not_build_shows_the_compilers_words() {
    let sandbox = repository();
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = 1_000_000\n", "broken");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_000_000;\n");
    let said = gate(&sandbox, "HEAD", &[]).code(2).stdout("");
    let words = stderr(&said);
    let line = words.lines().last().unwrap_or_default();
    assert!(line.starts_with("error: HEAD (") && line.contains("does not build: error: expected"), "{line}");
    assert!(words.contains("engine.rs:1:"), "the compiler's own lines are shown: {words}");
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
