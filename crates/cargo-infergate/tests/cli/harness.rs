//! Head's benches over base's sources: the change that adds the bench target is gated too.

use std::process::Command as Process;

use crate::repositories::{MANIFEST, WORKER, commit, gate, git, left_behind, repository};
use crate::sandbox::{Sandbox, decision, stderr, stdout};
use crate::swap::two_crates;

/// A repository whose last commit has no bench target, and whose working tree has one in a folder of its own.
fn that_adds_its_bench() -> Sandbox {
    let sandbox = repository();
    std::fs::remove_file(sandbox.path("bench.rs")).expect("the bench target");
    commit(&sandbox, "Cargo.toml", MANIFEST.split("[[bench]]").next().unwrap_or_default(), "no bench");
    sandbox.write("Cargo.toml", &MANIFEST.replace("bench.rs", "benches/main.rs"));
    // A harness of two files.
    sandbox.write("benches/main.rs", "mod worker;\n\nfn main() {\n    worker::main();\n}\n");
    sandbox.write("benches/worker/mod.rs", &WORKER.replace("fn main()", "pub fn main()"));
    sandbox
}

#[test]
fn a_change_that_adds_the_bench_target_is_gated_by_it() {
    let sandbox = that_adds_its_bench();
    let before = left_behind(&sandbox);
    let said = gate(&sandbox, "HEAD", &[]).success();
    let report = stdout(&said);
    assert!(decision(&said).contains("pass") && report.contains("same code"), "{report}");
    let note = "base has no bench target 'inference': head's benches were laid over it";
    assert!(report.contains(note), "{report}");
    assert_eq!(left_behind(&sandbox), before);

    // What it changes beside the harness is measured: base keeps its own sources.
    sandbox.write("engine.rs", "pub const STEP_NS: u64 = 1_100_000;\n");
    let said = gate(&sandbox, "HEAD", &[]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +10"), "{}", stdout(&said));
}

#[cfg(unix)]
#[test]
fn a_link_among_heads_benches_is_laid_over_base_as_a_link() {
    let sandbox = that_adds_its_bench();
    std::os::unix::fs::symlink("..", sandbox.path("benches/up")).expect("a link");
    gate(&sandbox, "HEAD", &[]).success();
    assert!(sandbox.path("cache/laid/tree/benches/up").is_symlink());
}

/// Beside the sources, or in a folder below theirs.
#[test]
fn a_bench_target_among_the_sources_does_not_bring_heads_sources_into_base() {
    for (bench, engine) in [("src/bench.rs", "src/engine.rs"), ("src/step/bench.rs", "src/step/mod.rs")] {
        let sandbox = repository();
        std::fs::remove_file(sandbox.path("bench.rs")).expect("the bench target");
        let manifest = MANIFEST.replace("engine.rs", "src/engine.rs").replace("bench.rs", bench);
        sandbox.write("src/engine.rs", "pub mod step;\npub use step::STEP_NS;\n");
        sandbox.write(engine, "pub const STEP_NS: u64 = 1_000_000;\n");
        commit(&sandbox, "Cargo.toml", manifest.split("[[bench]]").next().unwrap_or_default(), "no bench");
        sandbox.write("Cargo.toml", &manifest);
        sandbox.write(bench, WORKER);
        sandbox.write(engine, "pub const STEP_NS: u64 = 1_100_000;\n");
        let said = gate(&sandbox, "HEAD", &[]).code(1);
        assert!(stdout(&said).contains("head's benches were laid over it"), "{}", stdout(&said));
        assert!(decision(&said).contains("regressed (exit 1): decode/p8 +10"), "{}", stdout(&said));
    }
}

/// Without the package at its root.
fn only_a_root() -> Sandbox {
    let sandbox = repository();
    for file in ["bench.rs", "engine.rs", "Cargo.toml"] {
        std::fs::remove_file(sandbox.path(file)).expect("it was there");
    }
    sandbox
}

/// A gate in a folder of the repository.
fn gate_in(sandbox: &Sandbox, folder: &str, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut process = sandbox.process(&["gate", "--against=HEAD", "--cases=decode/p8", "--model=m", "--threads=1"]);
    process.arg("--base-folder").arg(sandbox.path("cache")).args(arguments).current_dir(sandbox.path(folder));
    assert_cmd::Command::from_std(process).assert()
}

const KERNELS: &str = "[package]\nname = 'kernels'\nversion = '0.1.0'\nedition = '2021'\n";

/// Two packages, and no workspace around them: what base's harness needs of the repository is base's.
#[test]
fn a_neighbour_in_the_repository_is_taken_from_base() {
    let sandbox = only_a_root();
    sandbox.write(".gitignore", "target\n/cache\nCargo.lock\n");
    sandbox.write("kernels/Cargo.toml", KERNELS);
    sandbox.write("kernels/src/lib.rs", "pub const STEP_NS: u64 = 1_000_000;\n");
    sandbox.write("gated/engine.rs", "");
    commit(&sandbox, "gated/Cargo.toml", MANIFEST.split("[[bench]]").next().unwrap_or_default(), "no bench");
    sandbox
        .write("gated/Cargo.toml", &format!("{MANIFEST}\n[dev-dependencies]\nkernels = {{ path = '../kernels' }}\n"));
    sandbox.write("gated/bench.rs", &WORKER.replace("engine::", "kernels::"));
    sandbox.write("kernels/src/lib.rs", "pub const STEP_NS: u64 = 1_100_000;\n");
    let said = gate_in(&sandbox, "gated", &[]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +10"), "{}", stdout(&said));
}

#[test]
fn where_neither_has_the_bench_target_nothing_can_be_compared() {
    let sandbox = that_adds_its_bench();
    git(&sandbox, &["checkout", "--quiet", "--", "Cargo.toml"]);
    let said = gate(&sandbox, "HEAD", &[]).code(4).stdout("");
    let line = stderr(&said).lines().last().unwrap_or_default().to_owned();
    let both = "no bench target that can be gated; there are main (its package depends on neither criterion nor divan)";
    assert!(line.ends_with(both), "{line}");
}

/// Its version that head's Cargo.lock has would be built into base, too, and what the upgrade costs would not be seen.
#[test]
fn a_harness_that_needs_a_later_version_of_what_base_has_is_refused() {
    let home = two_crates();
    let lock = |sandbox: &Sandbox| {
        let mut cargo = Process::new("cargo");
        cargo.args(["update", "--workspace"]).current_dir(sandbox.path("")).env("CARGO_HOME", home.path(""));
        assert!(cargo.output().expect("cargo").status.success());
    };
    let sandbox = that_adds_its_bench();
    let depends = "\n[dependencies]\nback = '1.0.0'\n";
    let no_bench = MANIFEST.split("[[bench]]").next().unwrap_or_default();
    sandbox.write("Cargo.toml", &format!("{no_bench}{}", depends.replace("1.0.0", "=1.0.0")));
    lock(&sandbox);
    sandbox.write("Cargo.toml", &format!("{no_bench}{depends}"));
    lock(&sandbox);
    git(&sandbox, &["add", "--force", "Cargo.toml", "Cargo.lock"]);
    git(&sandbox, &["commit", "--quiet", "-m", "locked to the older one"]);
    let with_bench = MANIFEST.replace("bench.rs", "benches/main.rs");
    sandbox.write("Cargo.toml", &format!("{with_bench}{depends}\n[dev-dependencies]\nfront = '1.0.1'\n"));
    lock(&sandbox);
    let mut process = sandbox.process(&["gate", "--against=HEAD", "--cases=decode/p8"]);
    process.args(["--model=m", "--threads=1", "--base-folder=cache"]).env("CARGO_HOME", home.path(""));
    let said = assert_cmd::Command::from_std(process).assert().code(4).stdout("");
    let line = stderr(&said).lines().last().unwrap_or_default().to_owned();
    assert!(line.contains("head's benches do not fit base: failed to select a version for `back`"), "{line}");
}
