//! Small git repositories whose bench target is a worker without any dependency, and `gate --against` in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use assert_cmd::assert::Assert;

use crate::sandbox::{Sandbox, ran};

/// A bench target that speaks the worker protocol with a made-up clock: STEP_NS is what its commit says.
pub const WORKER: &str = include_str!("../programs/worker_without_dependencies.rs");

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
    ran(process)
}

/// Cargo in the sandbox, with that home.
pub fn cargo(sandbox: &Sandbox, home: &Path, arguments: &[&str]) {
    let mut cargo = Process::new("cargo");
    let output = cargo.args(arguments).current_dir(sandbox.path("")).env("CARGO_HOME", home).output().expect("cargo");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A gate of the working tree, whose cargo has that home.
pub fn gate_with_home(sandbox: &Sandbox, home: &Path) -> Assert {
    let mut process = gate_in(sandbox, sandbox.path("cache"));
    process.env("CARGO_HOME", home);
    ran(process)
}

/// A gate of the working tree whose base is built in that folder.
pub fn gate_in(sandbox: &Sandbox, base_folder: PathBuf) -> Process {
    let mut process = sandbox.process(&["gate", "--against=HEAD", "--cases=decode/p8", "--model=m", "--threads=1"]);
    process.arg("--base-folder").arg(base_folder);
    process
}

pub fn gate(sandbox: &Sandbox, revision: &str, arguments: &[&str]) -> Assert {
    run(sandbox, &[&["gate", "--against", revision, "--cases=decode/p8"], arguments].concat())
}

/// The working tree's status and its worktrees, which a gate must leave as they were.
pub fn left_behind(sandbox: &Sandbox) -> String {
    git(sandbox, &["status", "--porcelain"])
}
