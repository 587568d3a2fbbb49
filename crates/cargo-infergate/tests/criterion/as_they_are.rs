//! Benches of plain criterion, in a repository that knows nothing of infergate.

use crate::repositories::{commit, empty_repository, git};
use crate::sandbox::{Sandbox, decision, error, ran, stderr, stdout};
use crate::stand_ins::what_takes_criterions_place_is_gated_too;

/// Criterion's own version is never asked for.
/// What other crates of a graph turn on in `serde_json` changes how the worker reads its requests, too.
pub const MANIFEST: &str = "[package]\nname = 'parser'\nversion = '0.1.0'\nedition = '2018'\n\n\
    [dev-dependencies]\ncriterion = { version = '0.5', features = ['html_reports'] }\n\
    serde_json = { version = '1', features = ['arbitrary_precision', 'preserve_order', 'float_roundtrip', 'raw_value'] }\n\n\
    [[bench]]\nname = 'parse'\nharness = false\n";

/// What an iteration takes is told, not timed, and less than it can take. One name is longer than any that is kept, and has lines' ends
/// in it.
pub const BENCH: &str = r#"
#[macro_use]
extern crate criterion;

use criterion::{black_box, BenchmarkId, Criterion, Throughput};
use std::time::Duration;

fn parse(c: &mut Criterion) {
    std::fs::write("target/kept.txt", "what benches keep").expect("a folder that cargo makes");
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

pub fn repository() -> Sandbox {
    let sandbox = empty_repository();
    sandbox.write("Cargo.toml", MANIFEST);
    sandbox.write(".gitignore", "/target\n/cache\nCargo.lock\n");
    sandbox.write("benches/parse.rs", BENCH);
    commit(&sandbox, "src/lib.rs", "pub const STEP_NS: u64 = 1_000;\n", "first");
    sandbox
}

pub fn gate(sandbox: &Sandbox, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut gate = sandbox.process(&["gate", "--against=HEAD", "--threads=1", "--memory-runs=0"]);
    gate.arg("--base-folder=cache").args(arguments);
    if !arguments.iter().any(|argument| argument.starts_with("--out=")) {
        gate.arg("--out=target/paired.json");
    }
    ran(gate)
}

/// One repository for all of them: criterion is compiled once.
#[test]
fn benches_are_gated_as_they_are() {
    let sandbox = repository();
    what_is_not_committed_is_gated_and_the_repository_is_left_as_it_is(&sandbox);
    // What a bench target asks for is enabled; other keys of [bench] name no bench target.
    let another = "\n[[bench]]\nname = 'print'\nharness = false\nrequired-features = ['text']\n\n\
                   [[bench]]\nname = 'never'\nharness = false\nbench = false\n\n[features]\ntext = []\n\n\
                   [target.'cfg(codspeed)'.dev-dependencies]\ncodspeed-criterion-compat = { path = 'compat' }\n";
    sandbox.write("compat/Cargo.toml", "[package]\nname = 'codspeed-criterion-compat'\nversion = '4.0.0'\n");
    sandbox.write("compat/src/lib.rs", "");
    sandbox.write("Cargo.toml", &format!("{MANIFEST}{another}"));
    // Targets are an engine's.
    sandbox.write("infergate.toml", "targets = ['prefill/p128 ttft_ms < 1']\n[bench]\ndefault_features = true\n");
    sandbox.write("benches/never.rs", "use criterion::nothing;\n");
    commit(&sandbox, "benches/print.rs", &BENCH.replace("parser::STEP_NS", "2_000"), "another");
    sandbox.write("src/lib.rs", "pub const STEP_NS: u64 = 1_100;\n");
    several_bench_targets_are_one_suite(&sandbox);
    shares_of_several_machines_are_judged_together(&sandbox);
    what_is_wrong_with_one_bench_costs_the_others_nothing(&sandbox);
    what_takes_criterions_place_is_gated_too(&sandbox);
    new_bench_targets_cost_the_others_nothing(&sandbox);
    benches_of_divan_are_gated_too(&sandbox);
    the_function_that_takes_the_time_is_named(&sandbox);
    allocations_are_counted_in_a_build_of_its_own(&sandbox);
}

fn what_is_not_committed_is_gated_and_the_repository_is_left_as_it_is(sandbox: &Sandbox) {
    sandbox.write("src/lib.rs", "mod more;\npub const STEP_NS: u64 = 1_000 + more::MORE;\n");
    sandbox.write("src/more.rs", "pub const MORE: u64 = 100;\n");
    let before = (git(sandbox, &["status", "--porcelain"]), sandbox.path("Cargo.lock").exists());
    let said = gate(sandbox, &[]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): parse/short +10"), "{}", stdout(&said));
    let note = "both sides were built in checkouts with infergate's drop-in replacement for criterion";
    assert!(stdout(&said).contains(note), "{}", stdout(&said));
    let cut = "parse/long long long long";
    assert!(stdout(&said).contains(cut), "{}", stdout(&said));
    // The front takes the criterion that cargo chose for the repository, which other packages may take too.
    let lock = std::fs::read_to_string(sandbox.path("cache/head/tree/Cargo.lock")).expect("a lock file");
    assert!(lock.contains("name = \"criterion\"\nversion = \"0.5."), "{lock}");
    assert_eq!((git(sandbox, &["status", "--porcelain"]), sandbox.path("Cargo.lock").exists()), before);

    // A file that is gone again is gone in the checkout, too. One bench is asked for, of the only target.
    git(sandbox, &["checkout", "--quiet", "--", "src/lib.rs"]);
    std::fs::remove_file(sandbox.path("src/more.rs")).expect("a file");
    let said = gate(sandbox, &["--cases=parse/short"]).success();
    assert!(decision(&said).contains("pass (exit 0): 1 case"), "{}", stdout(&said));
    assert!(!stdout(&said).contains(cut), "{}", stdout(&said));
}

/// Benches of which some cannot be measured.
const ODD: &str = r#"
use criterion::{criterion_group, criterion_main, Benchmark, Criterion, ParameterizedBenchmark};
use std::time::Duration;

fn odd(c: &mut Criterion) {
    c.bench_function("fine", |b| b.iter_custom(|iterations| Duration::from_nanos(iterations / 2)));
    c.bench_function("panics", |b| b.iter(|| if parser::STEP_NS > 0 { panic!("as it has to") }));
    c.bench_function("breaks", |b| b.iter(|| assert!(parser::STEP_NS < 2_000)));
    c.bench_function("prints", |b| b.iter(|| println!("{}", "line ".repeat(200))));
    c.bench_function("no loop", |_| ());
    // As rayon's pools ask for it.
    c.bench_function("elsewhere", |b| std::thread::scope(|scope| {
        scope.spawn(|| b.iter_custom(|iterations| Duration::from_nanos(iterations / 2)));
    }));
    // Each side has a folder of its own.
    c.bench_function(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/odd.rs"), |b| b.iter_custom(|n| Duration::from_nanos(n / 2)));
    // As criterion 0.3 had it.
    let old = ParameterizedBenchmark::new("old", |b, step: &u64| { let step = *step; b.iter_custom(move |n| Duration::from_nanos(n / step)) }, vec![2, 3]);
    c.bench("old", old.sample_size(20));
    c.bench("older", Benchmark::new("one", |b| b.iter_custom(|n| Duration::from_nanos(n / 2))));
}

/// As one for another version of criterion.
struct Profiler;

criterion_group!(name = benches; config = Criterion::default().with_profiler(Profiler); targets = odd);
criterion_main!(benches);
"#;

fn what_is_wrong_with_one_bench_costs_the_others_nothing(sandbox: &Sandbox) {
    let manifest = std::fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest");
    let own = |name: &str| format!("\n[[bench]]\nname = '{name}'\nharness = false\n");
    // What its module uses is its own.
    sandbox.write("benches/broken.rs", "mod parts;\nfn main() {}\n");
    sandbox.write("benches/parts/mod.rs", "use criterion::nothing;\n");
    sandbox.write("benches/odd.rs", ODD);
    let library = std::fs::read_to_string(sandbox.path("src/lib.rs")).expect("a library");
    sandbox.write("src/lib.rs", "pub const STEP_NS: u64 = 1_000;\n");
    commit(sandbox, "Cargo.toml", &format!("{manifest}{}{}", own("odd"), own("broken")), "odd benches");
    let said = gate(sandbox, &["--bench-target=*", "--quick", "--time-same-code"]).success();
    let (out, err) = (stdout(&said), stderr(&said));
    for name in [
        "odd/fine",
        "odd/elsewhere",
        "odd/benches/odd.rs",
        "odd/breaks",
        "odd/old/2",
        "odd/old/3",
        "odd/older/one",
        "parse/parse/short",
    ] {
        assert!(out.lines().any(|line| line.starts_with(name)), "{name}: {out}\n{err}");
    }
    for name in ["odd/panics: not compared, it fails in base and head: ", "odd/no loop: not compared, it fails in base"]
    {
        assert!(out.lines().any(|line| line.contains(name)), "{name}: {out}\n{err}");
    }
    assert!(out.contains("bench target 'broken' is not compared, it fails in base: "), "{out}");
    let printed = err.lines().filter(|line| line.starts_with("line line")).count();
    assert!((1..=300).contains(&printed), "{printed}: {out}");

    // Of one target no bench works on either side, and of another base has none: they cost the others nothing.
    let renamed = BENCH.replace("benchmark_group(\"parse\")", "benchmark_group(\"renamed\")");
    let print = std::fs::read_to_string(sandbox.path("benches/print.rs")).expect("a bench");
    sandbox.write("benches/print.rs", &renamed);
    let targets = "--bench-target=odd,parse,print";
    let said = gate(sandbox, &[targets, "--cases=odd/panics*,parse/*,print/*", "--time-same-code"]).success();
    for name in [
        "bench target 'odd' is not compared: odd/panics: not compared, it fails in base and head: ",
        "bench target 'print' is not compared: base has none of the benches that were requested",
    ] {
        assert!(stdout(&said).contains(name), "{name}: {}", stdout(&said));
    }
    sandbox.write("benches/print.rs", &print);

    // What fails in head alone is no pass.
    sandbox.write("src/lib.rs", "pub const STEP_NS: u64 = 2_000;\n");
    let said = gate(sandbox, &["--bench-target=odd", "--cases=f*,b*,pan*", "--time-same-code"]).code(3);
    assert!(decision(&said).contains("(exit 3): breaks fails in head alone: "), "{}", stdout(&said));
    let fine = stdout(&said).lines().find(|line| line.starts_with("fine ")).map(str::to_owned);
    assert!(fine.is_some_and(|row| row.ends_with("within limit")), "{}", stdout(&said));

    // One that is no worker any more, and one that head lacks, are named.
    sandbox.write("benches/odd.rs", "fn main() {}\n");
    let said = gate(sandbox, &["--bench-target=parse,o*", "--quick", "--time-same-code"]).success();
    let lost = "bench target 'odd' is not compared, it fails in head alone: ";
    assert!(stdout(&said).contains(lost), "{}", stdout(&said));
    sandbox.write("Cargo.toml", &manifest);
    // Else cargo finds it by its file.
    std::fs::remove_file(sandbox.path("benches/odd.rs")).expect("a file");
    let said = gate(sandbox, &["--bench-target=*", "--quick", "--cases=parse/*", "--time-same-code"]).success();
    let removed = "bench target 'odd': not compared, only base has it";
    assert!(stdout(&said).contains(removed), "{}", stdout(&said));
    sandbox.write("src/lib.rs", &library);
    commit(sandbox, "Cargo.toml", &manifest, "none of them");
}

fn several_bench_targets_are_one_suite(sandbox: &Sandbox) {
    let said = gate(sandbox, &["--cases=*/short", "--time-same-code"]).code(1);
    assert!(decision(&said).contains("regressed (exit 1): parse/parse/short +10"), "{}", stdout(&said));
    let is_whole = ["print/parse/short", "benches of parse, print"].iter().all(|part| stdout(&said).contains(part));
    assert!(is_whole, "{}", stdout(&said));

    let note = "targets are not judged: criterion and divan benches have none of their metrics";
    assert!(stdout(&said).contains(note), "{}", stdout(&said));

    // Nothing of the other target is built differently: it is not timed.
    let said = gate(sandbox, &["--cases=*/short"]).code(1);
    let row = stdout(&said).lines().find(|line| line.starts_with("print/parse/short")).map(str::to_owned);
    assert!(row.as_ref().is_some_and(|row| row.ends_with("same code")), "{}", stdout(&said));

    // One of both, by its name.
    let said = gate(sandbox, &["--cases=parse/short", "--bench-target=print", "--time-same-code"]).success();
    assert!(decision(&said).contains("pass (exit 0): 1 case"), "{}", stdout(&said));
    let line = error(gate(sandbox, &["--bench-target=parse,prnit"]));
    assert!(line.contains("'prnit' names no bench target that can be gated; there are parse; print"), "{line}");
}

fn shares_of_several_machines_are_judged_together(sandbox: &Sandbox) {
    let share = |number: usize| {
        let (shard, out) = (format!("--shard={number}/3"), format!("--out=target/{number}.json"));
        gate(sandbox, &["--bench-target=*", "--time-same-code", &shard, &out])
    };
    share(1).success();
    let second = share(2).code(1);
    let note = "shard 2 of 3 of a suite of 4 cases: only all shards together give its verdict";
    assert!(stdout(&second).contains(note), "{}", stdout(&second));
    share(3).success();
    let receipts = ["--receipt=target/3.json", "--receipt=target/1.json", "--receipt=target/2.json"];
    let said = sandbox.run(&[&["gate"], &receipts[..]].concat()).code(1);
    assert!(decision(&said).contains("regressed (exit 1): parse/parse/short +10"), "{}", stdout(&said));
    assert!(decision(&said).contains("1 of 4 "), "{}", stdout(&said));
}

/// divan takes its own time, so that nothing is said of it here but that it was taken.
fn benches_of_divan_are_gated_too(sandbox: &Sandbox) {
    let bench = "fn main() {\n    divan::main();\n}\n\n#[divan::bench(args = [10, 20])]\nfn sum(to: u64) -> u64 {\n    \
                 (0..divan::black_box(to)).map(|n| n ^ parser::STEP_NS).sum()\n}\n\nmod deep {\n    #[divan::bench(min_time = 1000)]\n    \
                 fn text() -> String {\n        divan::black_box(\"a\").repeat(3)\n    }\n}\n";
    sandbox.write("Cargo.toml", &MANIFEST.replace("criterion =", "divan = '0.1'\ncriterion ="));
    git(sandbox, &["rm", "--quiet", "benches/never.rs"]);
    sandbox.write("benches/parse.rs", bench);
    git(sandbox, &["rm", "--quiet", "benches/print.rs"]);
    commit(sandbox, "src/lib.rs", "pub const STEP_NS: u64 = 1_000;\n", "divan");
    let said = gate(sandbox, &[]).success();
    for case in ["parse::deep::text", "parse::sum::10", "parse::sum::20"] {
        assert!(stdout(&said).contains(case), "{}", stdout(&said));
    }
    assert!(decision(&said).contains("pass (exit 0): 3 cases"), "{}", stdout(&said));
    let own = bench.replace("divan::main()", "divan::Divan::default().threads([1]).run_benches()");
    sandbox.write("benches/parse.rs", &own);
    let said = gate(sandbox, &["--quick", "--time-same-code", "--cases=*sum*"]).success();
    let rows = stdout(&said).lines().filter(|line| line.starts_with("parse::sum::") && line.contains(" % (")).count();
    assert_eq!(rows, 2, "{}", stdout(&said));
}

/// The verdict is on times that the bench tells; where it works is seen.
fn the_function_that_takes_the_time_is_named(sandbox: &Sandbox) {
    let bench = BENCH.replace(
        "Duration::from_nanos(black_box(step) * iterations / 2_000)",
        "{
                for at in 0..iterations {
                    black_box((step, parser::other(at), parser::hash(at, parser::ROUNDS)));
                }
                Duration::from_nanos(iterations * (100 + 10 * parser::ROUNDS) / 200)
            }",
    );
    let library = "pub const STEP_NS: u64 = 1;\n\
                   #[inline(never)]\npub fn hash(of: u64, rounds: u64) -> u64 {\n    \
                   (0..rounds).fold(of, |sum, at| std::hint::black_box(sum.rotate_left(5) ^ at))\n}\n\
                   #[inline(never)]\npub fn other(of: u64) -> u64 {\n    hash_of(of)\n}\n\
                   #[inline(never)]\nfn hash_of(of: u64) -> u64 {\n    \
                   (0..60).fold(of, |sum, at| std::hint::black_box(sum.rotate_left(7) ^ at))\n}\n";
    let rounds = |rounds: u64| format!("{library}pub const ROUNDS: u64 = {rounds};\n");
    sandbox.write("Cargo.toml", MANIFEST);
    sandbox.write("benches/parse.rs", &bench);
    commit(sandbox, "src/lib.rs", &rounds(40), "work");
    sandbox.write("src/lib.rs", &rounds(80).replace("(0..rounds)", "(0..rounds + 1)"));
    let said = gate(sandbox, &["--cases=parse/short", "--explain=no-such-bench", "--explain=parse/short"]).code(1);
    assert!(stderr(&said).contains("--explain no-such-bench: names none of the 1 cases"), "{}", stderr(&said));
    let said = stdout(&said);
    let (_, where_it_is) =
        said.split_once("where parse/short takes its time (8 more blocks").expect("what takes the time");
    let named = where_it_is.lines().nth(1).unwrap_or_default();
    assert!(named.contains(" in parser::hash, which this change edits"), "{said}");
    assert!(!named.contains("parser::hash_of"), "{said}");

    let said = gate(sandbox, &["--cases=parse/short", "--no-explain"]).code(1);
    assert!(!stdout(&said).contains("takes its time"), "{}", stdout(&said));
}

/// Set-up is not counted, and what a process decides by chance is not compared.
fn allocations_are_counted_in_a_build_of_its_own(sandbox: &Sandbox) {
    let bench = r#"
use criterion::{black_box, criterion_group, criterion_main, BatchSize, Criterion};
use std::time::Duration;

fn allocate(times: u64) {
    for at in 0..times {
        black_box(vec![1_u8; 100 + at as usize]);
    }
}

fn heap(c: &mut Criterion) {
    c.bench_function("told", |b| {
        b.iter_custom(|iterations| {
            parser::work(iterations);
            Duration::from_nanos(iterations)
        })
    });
    c.bench_function("batched", |b| {
        b.iter_batched(|| vec![0_u8; 4096], |input| parser::work(input.len() as u64 / 4096), BatchSize::SmallInput)
    });
    c.bench_function("by_chance", |b| {
        let times = 100 + u64::from(std::process::id()) % 1000 + parser::COPIES;
        b.iter_custom(|iterations| {
            allocate(times);
            Duration::from_nanos(iterations)
        })
    });
}

criterion_group!(benches, heap);
criterion_main!(benches);
"#;
    let library = |copies: u64| {
        format!(
            "pub const COPIES: u64 = {copies};\n#[inline(never)]\npub fn work(times: u64) {{\n    for at in 0..times * COPIES {{\n        \
             std::hint::black_box(vec![1_u8; 100 + at as usize % 2]);\n    }}\n}}\n"
        )
    };
    sandbox.write("benches/parse.rs", bench);
    commit(sandbox, "src/lib.rs", &library(2), "allocations");
    sandbox.write("src/lib.rs", &library(4));
    let mut gate = sandbox.process(&["gate", "--against=HEAD", "--threads=1", "--budget=20s"]);
    gate.args(["--base-folder=cache", "--out=target/paired.json", "--no-explain"]);
    let said = ran(gate).code(1);
    let text = stdout(&said);
    assert!(text.contains("allocations per iteration +2 (2 → 4)"), "{text}");
    let line = text.lines().find(|line| line.contains("allocations per iteration +2")).unwrap_or_default();
    assert!(line.contains("batched") && line.contains("told") && !line.contains("by_chance"), "{text}");
    assert!(!text.contains("by_chance: "), "{text}");
    assert!(decision(&said).contains("counter regressed (exit 1)"), "{text}");

    // One with an allocator of its own is timed all the same.
    let own = "#[global_allocator]\nstatic OWN: std::alloc::System = std::alloc::System;\n";
    sandbox.write("benches/parse.rs", &format!("{own}{bench}"));
    let mut gate = sandbox.process(&["gate", "--against=HEAD", "--threads=1", "--cases=told"]);
    gate.args(["--base-folder=cache", "--out=target/paired.json", "--no-explain"]);
    let said = ran(gate).success();
    assert!(stderr(&said).contains("allocations are not counted: "), "{}", stderr(&said));
    assert!(decision(&said).contains("pass (exit 0): 1 case"), "{}", stdout(&said));
}

/// Base's checkout is looked at for each, and has the front for the one that
/// it has.
fn new_bench_targets_cost_the_others_nothing(sandbox: &Sandbox) {
    sandbox.write("benches/parse.rs", BENCH);
    sandbox.write("src/lib.rs", "pub const STEP_NS: u64 = 1_000;\n");
    commit(sandbox, "Cargo.toml", MANIFEST, "one bench target");
    let new = |name: &str| format!("[[bench]]\nname = '{name}'\nharness = false\n");
    sandbox.write("Cargo.toml", &format!("{}{}{}", MANIFEST, new("text"), new("wrong")));
    sandbox.write("src/lib.rs", "pub const STEP_NS: u64 = 1_100;\n");
    sandbox.write("benches/text.rs", BENCH);
    sandbox.write("benches/wrong.rs", "use criterion::nothing;\n");
    let said = gate(sandbox, &["--cases=*/short"]).code(1);
    let report = stdout(&said);
    assert!(decision(&said).contains("short +10.0 %") && decision(&said).ends_with(" (and 1 more)"), "{report}");
    for case in ["- parse/parse/short: it runs", "- text/parse/short: it runs"] {
        assert!(report.contains(case), "{report}");
    }
    assert!(report.contains("base and head are laid out alike"), "{report}");
    let lost: Vec<&str> = report.lines().filter(|line| line.contains("is not compared")).collect();
    let wrong = "bench target 'wrong' is not compared, it fails in head alone: ";
    assert!(lost.iter().all(|line| line.contains(wrong)) && !lost.is_empty(), "{report}");
    std::fs::remove_file(sandbox.path("benches/text.rs")).expect("a file");
    std::fs::remove_file(sandbox.path("benches/wrong.rs")).expect("a file");
    sandbox.write("Cargo.toml", MANIFEST);
}
