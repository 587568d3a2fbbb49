//! Benches of plain criterion, in a repository that knows nothing of infergate.

use crate::revisions::{commit, empty_repository, git};
use crate::sandbox::{Sandbox, decision, error, stderr, stdout};

/// Criterion's own version is never asked for.
const MANIFEST: &str = "[package]\nname = 'parser'\nversion = '0.1.0'\nedition = '2018'\n\n\
    [dev-dependencies]\ncriterion = { version = '0.5', features = ['html_reports'] }\n\n\
    [[bench]]\nname = 'parse'\nharness = false\n";

/// What an iteration takes is told, not timed, and less than it can take. One name is longer than any that is kept, and has lines' ends
/// in it.
const BENCH: &str = r#"
#[macro_use]
extern crate criterion;

use criterion::{black_box, BenchmarkId, Criterion, Throughput};
use std::time::Duration;

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    group.throughput(Throughput::Bytes(7)).sample_size(20);
    for (name, step) in [("short".to_owned(), parser::STEP_NS), ("long\n".repeat(100), 500)] {
        group.bench_with_input(BenchmarkId::from_parameter(name), &step, |b, &step| {
            b.iter_custom(|iterations| Duration::from_nanos(black_box(step) * iterations / 2_000))
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(1));
    targets = parse
}
criterion_main!(benches);
"#;

fn repository() -> Sandbox {
    let sandbox = empty_repository();
    sandbox.write("Cargo.toml", MANIFEST);
    sandbox.write(".gitignore", "/target\n/cache\nCargo.lock\n");
    sandbox.write("benches/parse.rs", BENCH);
    commit(&sandbox, "src/lib.rs", "pub const STEP_NS: u64 = 1_000;\n", "first");
    sandbox
}

fn gate(sandbox: &Sandbox, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut gate = sandbox.process(&["gate", "--against=HEAD", "--threads=1", "--memory-runs=0", "--layouts=1"]);
    gate.args(["--base-folder=cache", "--out=target/paired.json"]).args(arguments);
    assert_cmd::Command::from_std(gate).assert()
}

#[test]
fn what_is_not_committed_is_gated_and_the_repository_is_left_as_it_is() {
    let sandbox = repository();
    sandbox.write("src/lib.rs", "mod more;\npub const STEP_NS: u64 = 1_000 + more::MORE;\n");
    sandbox.write("src/more.rs", "pub const MORE: u64 = 100;\n");
    let before = (git(&sandbox, &["status", "--porcelain"]), sandbox.path("Cargo.lock").exists());
    let said = gate(&sandbox, &[]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): parse/short 10"), "{}", stdout(&said));
    let note = "both sides were built in checkouts in which infergate stands for criterion";
    assert!(stdout(&said).contains(note), "{}", stdout(&said));
    let cut = "parse/long long long long";
    assert!(stdout(&said).contains(cut), "{}", stdout(&said));
    assert_eq!((git(&sandbox, &["status", "--porcelain"]), sandbox.path("Cargo.lock").exists()), before);

    // A file that is gone again is gone in the checkout, too. One bench is asked for, of the only target.
    git(&sandbox, &["checkout", "--quiet", "--", "src/lib.rs"]);
    std::fs::remove_file(sandbox.path("src/more.rs")).expect("a file");
    let said = gate(&sandbox, &["--cases=parse/short"]).success();
    assert!(decision(&said).contains("pass (exit 0): 1 case"), "{}", stdout(&said));
    assert!(!stdout(&said).contains(cut), "{}", stdout(&said));
}

#[test]
fn which_bench_is_asked_where_there_are_several() {
    let sandbox = repository();
    sandbox.write("Cargo.toml", &format!("{MANIFEST}\n[[bench]]\nname = 'print'\nharness = false\n"));
    commit(&sandbox, "benches/print.rs", BENCH, "another");
    let line = error(gate(&sandbox, &[]));
    assert!(line.contains("several bench targets use criterion: parse, print; name one with --bench-target"), "{line}");
}

#[test]
fn benches_of_something_else_are_named() {
    let sandbox = repository();
    sandbox.write("Cargo.toml", &MANIFEST.replace("criterion = { version = '0.5', features = ['html_reports'] }", ""));
    commit(&sandbox, "benches/parse.rs", "fn main() {}\n", "a bench of its own");
    let said = gate(&sandbox, &[]).code(4);
    assert!(stderr(&said).contains("has no bench target 'inference'"), "{}", stderr(&said));
    assert!(stderr(&said).contains("name one with --bench-target: there are parse"), "{}", stderr(&said));
}

/// What measures in the working tree cannot put anything in criterion's place there.
#[test]
fn other_commands_say_what_to_write() {
    let sandbox = repository();
    let line = error(sandbox.run(&["bench", "--bench-target=parse"]));
    assert!(line.contains("uses criterion itself") && line.contains("package = \"infergate-criterion\""), "{line}");
}
