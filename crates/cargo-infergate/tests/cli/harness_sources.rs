//! Where a harness's packages come from: git and registries. What base has keeps the commit that it is locked to.

use std::path::Path;
use std::process::Command as Process;

use crate::repositories::{MANIFEST, WORKER, commit, git, repository};
use crate::sandbox::{Sandbox, decision, stdout};

fn package(name: &str) -> String {
    format!("[package]\nname = '{name}'\nversion = '1.0.0'\nedition = '2021'\n")
}

fn cargo(folder: &Path, home: &Sandbox, arguments: &[&str]) {
    let mut cargo = Process::new("cargo");
    let output = cargo.args(arguments).current_dir(folder).env("CARGO_HOME", home.path("")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn gate(sandbox: &Sandbox, home: &Sandbox) -> assert_cmd::assert::Assert {
    let mut process = sandbox.process(&["gate", "--against=HEAD", "--cases=decode/p8"]);
    process.args(["--model=m", "--threads=1", "--base-folder=cache"]).env("CARGO_HOME", home.path(""));
    assert_cmd::Command::from_std(process).assert()
}

/// A repository without a bench target, locked to what `dependencies` says.
fn on(dependencies: &str, home: &Sandbox) -> Sandbox {
    let sandbox = repository();
    std::fs::remove_file(sandbox.path("bench.rs")).expect("the bench target");
    sandbox.write(".gitignore", "/target\n/cache\n");
    let without = MANIFEST.split("[[bench]]").next().unwrap_or_default();
    sandbox.write("Cargo.toml", &format!("{without}{dependencies}"));
    cargo(&sandbox.path(""), home, &["generate-lockfile"]);
    commit(&sandbox, "notes.txt", "", "no bench");
    sandbox
}

/// Both commits have one version. Base is built from its own.
#[test]
fn a_git_dependency_that_head_updates_stays_where_it_is_in_base() {
    let home = Sandbox::new();
    let kernels = repository();
    std::fs::remove_file(kernels.path("bench.rs")).expect("the bench target");
    kernels.write("Cargo.toml", &package("kernels"));
    commit(&kernels, "src/lib.rs", "pub const STEP_NS: u64 = 1_000_000;\n", "fast");
    let depends = format!("\n[dependencies]\nkernels = {{ git = 'file://{}' }}\n", kernels.path("").display());
    let sandbox = on(&depends, &home);
    commit(&kernels, "src/lib.rs", "pub const STEP_NS: u64 = 1_100_000;\n", "slow");
    sandbox.write("Cargo.toml", &format!("{}{depends}", MANIFEST.replace("bench.rs", "benches/main.rs")));
    sandbox.write("benches/main.rs", &WORKER.replace("engine::", "kernels::"));
    cargo(&sandbox.path(""), &home, &["update"]);
    let said = gate(&sandbox, &home).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +10"), "{}", stdout(&said));
    let commits = git(&kernels, &["log", "--format=%h", "--abbrev=10"]);
    let [slow, fast] = commits.lines().take(2).collect::<Vec<_>>()[..] else { panic!("two commits: {commits}") };
    let note = format!("dependencies differ: kernels 1.0.0 ({slow}) in head, 1.0.0 ({fast}) in base");
    assert!(stdout(&said).contains(&note), "{}", stdout(&said));
}
