//! Head's benches over base's sources: the change that adds the bench target is gated too.

use crate::repositories::{
    MANIFEST, WORKER, cargo, commit, empty_repository, gate, gate_in, gate_with_home, git, left_behind, repository,
};
use crate::sandbox::{Sandbox, decision, ran, stderr, stdout};
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

#[test]
fn a_bench_target_outside_its_package_cannot_be_compared_with_a_base_that_lacks_it() {
    let sandbox = empty_repository();
    sandbox.write(".gitignore", "target\n/cache\nCargo.lock\n");
    sandbox.write("gated/engine.rs", "pub const STEP_NS: u64 = 1_000_000;\n");
    commit(&sandbox, "gated/Cargo.toml", MANIFEST.split("[[bench]]").next().unwrap_or_default(), "no bench");
    sandbox.write("gated/Cargo.toml", &MANIFEST.replace("bench.rs", "../bench.rs"));
    sandbox.write("bench.rs", WORKER);
    let mut process = gate_in(&sandbox, sandbox.path("cache"));
    process.current_dir(sandbox.path("gated"));
    let said = ran(process).code(4);
    assert!(stderr(&said).contains("'inference' lies outside its package"), "{}", stderr(&said));
}

const KERNELS: &str = "[package]\nname = 'kernels'\nversion = '0.1.0'\nedition = '2021'\n";

/// Two packages, and no workspace around them: what base's harness needs of the repository is base's.
#[test]
fn a_neighbour_in_the_repository_is_taken_from_base() {
    let sandbox = empty_repository();
    sandbox.write(".gitignore", "target\n/cache\nCargo.lock\n");
    sandbox.write("kernels/Cargo.toml", KERNELS);
    sandbox.write("kernels/src/lib.rs", "pub const STEP_NS: u64 = 1_000_000;\n");
    sandbox.write("gated/engine.rs", "");
    commit(&sandbox, "gated/Cargo.toml", MANIFEST.split("[[bench]]").next().unwrap_or_default(), "no bench");
    sandbox
        .write("gated/Cargo.toml", &format!("{MANIFEST}\n[dev-dependencies]\nkernels = {{ path = '../kernels' }}\n"));
    sandbox.write("gated/bench.rs", &WORKER.replace("engine::", "kernels::"));
    sandbox.write("kernels/src/lib.rs", "pub const STEP_NS: u64 = 1_100_000;\n");
    let mut process = gate_in(&sandbox, sandbox.path("cache"));
    process.current_dir(sandbox.path("gated"));
    let said = ran(process).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +10"), "{}", stdout(&said));
}

/// Both commits have one version. Base is built from its own.
#[test]
fn a_git_dependency_that_head_updates_stays_where_it_is_in_base() {
    let kernels = empty_repository();
    kernels.write("Cargo.toml", KERNELS);
    commit(&kernels, "src/lib.rs", "pub const STEP_NS: u64 = 1_000_000;\n", "fast");
    let sandbox = repository();
    let home = sandbox.path("target/cargo-home");
    std::fs::remove_file(sandbox.path("bench.rs")).expect("the bench target");
    sandbox.write(".gitignore", "/target\n/cache\n");
    let depends = format!("\n[dependencies]\nkernels = {{ git = 'file://{}' }}\n", kernels.path("").display());
    let no_bench = MANIFEST.split("[[bench]]").next().unwrap_or_default();
    sandbox.write("Cargo.toml", &format!("{no_bench}{depends}"));
    cargo(&sandbox, &home, &["generate-lockfile"]);
    commit(&sandbox, "notes.txt", "", "no bench");
    commit(&kernels, "src/lib.rs", "pub const STEP_NS: u64 = 1_100_000;\n", "slow");
    sandbox.write("Cargo.toml", &format!("{MANIFEST}{depends}"));
    sandbox.write("bench.rs", &WORKER.replace("engine::", "kernels::"));
    cargo(&sandbox, &home, &["update"]);
    let said = gate_with_home(&sandbox, &home).code(1);
    assert!(decision(&said).contains("regressed (exit 1): decode/p8 +10"), "{}", stdout(&said));
    let commits = git(&kernels, &["log", "--format=%h", "--abbrev=10"]);
    let [slow, fast] = commits.lines().collect::<Vec<_>>()[..] else { panic!("two commits: {commits}") };
    let note = format!("dependencies differ: kernels 0.1.0 ({slow}) in head, 0.1.0 ({fast}) in base");
    assert!(stdout(&said).contains(&note), "{}", stdout(&said));
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
    let crates = two_crates();
    let home = crates.path("");
    let sandbox = that_adds_its_bench();
    let lock = || cargo(&sandbox, &home, &["update", "--workspace"]);
    let depends = "\n[dependencies]\nback = '1.0.0'\n";
    let no_bench = MANIFEST.split("[[bench]]").next().unwrap_or_default();
    sandbox.write("Cargo.toml", &format!("{no_bench}{}", depends.replace("1.0.0", "=1.0.0")));
    lock();
    sandbox.write("Cargo.toml", &format!("{no_bench}{depends}"));
    lock();
    git(&sandbox, &["add", "--force", "Cargo.toml", "Cargo.lock"]);
    git(&sandbox, &["commit", "--quiet", "-m", "locked to the older one"]);
    let with_bench = MANIFEST.replace("bench.rs", "benches/main.rs");
    sandbox.write("Cargo.toml", &format!("{with_bench}{depends}\n[dev-dependencies]\nfront = '1.0.1'\n"));
    lock();
    let said = gate_with_home(&sandbox, &home).code(4).stdout("");
    let line = stderr(&said).lines().last().unwrap_or_default().to_owned();
    assert!(line.contains("head's benches do not fit base: failed to select a version for `back`"), "{line}");
}
