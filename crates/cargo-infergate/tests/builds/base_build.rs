//! What base is built with, and where its checkout may overwrite and delete files.

use std::fs;

use crate::repositories::{WORKER, cargo, commit, gate, gate_in, gate_with_home, git, repository};
use crate::sandbox::{Sandbox, decision, error, ran, stderr, stdout};

/// Of cargo: its copies of dependencies are in the sandbox.
const HOME: &str = "target/cargo-home";

/// A repository whose engine takes its time from a dependency, at that dependency's first commit; the second is 20 % slower.
/// Cargo.lock says which one.
fn with_a_dependency() -> (Sandbox, Sandbox) {
    let dependency = Sandbox::new();
    fs::remove_dir_all(dependency.path(".git")).expect("the sandbox's own mark");
    git(&dependency, &["init", "--quiet", "--initial-branch=main"]);
    dependency.write("Cargo.toml", "[package]\nname = 'step'\nversion = '0.1.0'\nedition = '2021'\n");
    commit(&dependency, "src/lib.rs", "pub const NS: u64 = 1_000_000;\n", "first");

    let sandbox = repository();
    let manifest = fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest");
    let url = dependency.path("").to_string_lossy().trim_end_matches('/').to_owned();
    sandbox.write("Cargo.toml", &format!("{manifest}\n[dependencies]\nstep = {{ git = 'file://{url}' }}\n"));
    commit(&sandbox, "engine.rs", "pub const STEP_NS: u64 = step::NS;\n", "by a dependency");
    cargo(&sandbox, &sandbox.path(HOME), &["generate-lockfile"]);
    commit(&dependency, "src/lib.rs", "pub const NS: u64 = 1_200_000;\n", "slower");
    (sandbox, dependency)
}

#[test]
fn base_is_built_with_what_its_own_lock_file_says() {
    let (sandbox, _dependency) = with_a_dependency();
    let gate = || gate_with_home(&sandbox, &sandbox.path(HOME));
    // Ignored by git, so that base has none: cargo takes the newest.
    let said = gate().success();
    let report = stdout(&said);
    assert!(report.contains("improved") && report.contains("base has no Cargo.lock"), "{report}");
    assert!(report.contains("dependencies differ (base has no Cargo.lock; commit it): step 0.1.0 ("), "{report}");

    git(&sandbox, &["add", "--force", "Cargo.lock"]);
    commit(&sandbox, "notes.txt", "1", "locked");
    let said = gate().success();
    let report = stdout(&said);
    assert!(decision(&said).contains("pass") && report.contains("same code"), "{report}");
    assert!(!report.contains("Cargo.lock") && !report.contains("dependencies differ"), "{report}");

    let lock = fs::read_to_string(sandbox.path("Cargo.lock")).expect("a lock file");
    cargo(&sandbox, &sandbox.path(HOME), &["update"]);
    let report = stdout(&gate().code(1));
    assert!(report.contains("regressed") && report.contains("dependencies differ: step 0.1.0 ("), "{report}");
    sandbox.write("Cargo.lock", &lock);

    let manifest = fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest");
    commit(&sandbox, "Cargo.toml", &manifest.replace("0.1.0", "0.2.0"), "a version that the lock file does not know");
    let said = gate().code(2).stdout("");
    let line = stderr(&said).lines().last().unwrap_or_default().to_owned();
    assert!(
        line.starts_with("error: HEAD (") && line.contains("does not build") && line.contains("--locked"),
        "{line}"
    );
}

/// Or cargo puts the program of one side where that of the other was.
#[test]
fn a_build_folder_that_cargos_settings_name_is_not_shared() {
    let sandbox = repository();
    let all = sandbox.path("target/of-all");
    commit(&sandbox, ".cargo/config.toml", &format!("[build]\nbuild-dir = '{}'\n", all.display()), "one build folder");
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_050_000;\n");
    let elsewhere = Sandbox::new();
    let said = ran(gate_in(&sandbox, elsewhere.path("cache"))).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +5.0 %"), "{}", stdout(&said));
    assert!(elsewhere.path("cache/base").exists() && all.exists(), "the settings hold where the gate has no folder");
}

#[test]
fn a_folder_with_other_files_is_neither_overwritten_nor_emptied() {
    let sandbox = repository();
    sandbox.write("cache/base/tree/precious.txt", "mine");
    let line = error(gate(&sandbox, "HEAD", &[]));
    assert!(line.contains("holds files that infergate did not put there"), "{line}");
    assert!(sandbox.path("cache/base/tree/precious.txt").exists());
}

#[test]
fn other_worktrees_are_not_pruned() {
    let sandbox = repository();
    git(&sandbox, &["worktree", "add", "--quiet", "--detach", "target/other", "HEAD"]);
    // On a drive that is not there now, say.
    fs::rename(sandbox.path("target/other"), sandbox.path("target/away")).expect("moved");
    gate(&sandbox, "HEAD", &[]).success();
    fs::remove_dir_all(sandbox.path("cache/base/tree")).expect("a checkout");
    gate(&sandbox, "HEAD", &[]).success();
    fs::rename(sandbox.path("target/away"), sandbox.path("target/other")).expect("back again");
    git(&sandbox, &["-C", "target/other", "status"]);
}

/// A hook of the repository, and one among the tracked files that the configuration names.
#[cfg(unix)]
#[test]
fn checking_out_starts_no_program_of_the_repository() {
    let sandbox = repository();
    let script = format!("#!/bin/sh\necho ran >> '{}'\n", sandbox.path("target/ran").display());
    for name in ["hooks/post-checkout", "hooks/watcher", ".git/hooks/post-checkout"] {
        sandbox.program(name, &script);
    }
    fs::create_dir_all(sandbox.path("target")).expect("a folder");
    commit(&sandbox, "notes.txt", "1", "with hooks");
    git(&sandbox, &["config", "core.fsmonitor", &sandbox.path("hooks/watcher").to_string_lossy()]);
    let _ = fs::remove_file(sandbox.path("target/ran"));
    for hooks in [".git/hooks", "hooks"] {
        git(&sandbox, &["config", "core.hooksPath", &sandbox.path(hooks).to_string_lossy()]);
        gate(&sandbox, "HEAD", &[]).success();
        fs::remove_dir_all(sandbox.path("cache/base/tree")).expect("a checkout");
    }
    assert!(!sandbox.path("target/ran").exists());
    git(&sandbox, &["worktree", "add", "--quiet", "--force", "--detach", "target/control", "HEAD"]);
    assert!(sandbox.path("target/ran").exists(), "the hooks work");
}

/// Head's build script finds base built, and what it does to base's program ends the gate.
#[test]
fn base_is_built_and_hashed_before_any_code_of_head_runs() {
    let sandbox = repository();
    let script = "use std::io::Write;\n\nfn main() {\n    for entry in std::fs::read_dir(\"cache/base/target/release/deps\").unwrap() {\n        \
                  let path = entry.unwrap().path();\n        \
                  if path.extension().is_none() && path.to_string_lossy().contains(\"/inference-\") {\n            \
                  std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b\"more\").unwrap();\n        }\n    }\n}\n";
    sandbox.write("build.rs", script);
    let line = error(gate(&sandbox, "HEAD", &[]));
    assert!(line.contains("was rebuilt or removed"), "{line}");
}

/// Cargo does not run a script again whose own files are the same, and git cleans away what it made.
#[test]
fn what_a_build_script_makes_among_the_sources_is_there_in_each_gate() {
    let sandbox = repository();
    sandbox.write(".gitignore", "/target\n/cache\nCargo.lock\n/made.rs\n");
    sandbox.write("bench.rs", &format!("#[allow(dead_code)]\nmod made;\n{WORKER}"));
    let script = "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n    \
                  std::fs::write(\"made.rs\", \"pub const MADE: u8 = 1;\\n\").unwrap();\n}\n";
    commit(&sandbox, "build.rs", script, "a build script");
    for time in ["first", "second"] {
        let said = gate(&sandbox, "HEAD", &[]).success();
        assert!(decision(&said).starts_with("verdict: pass"), "the {time} time: {}", stdout(&said));
    }
}
