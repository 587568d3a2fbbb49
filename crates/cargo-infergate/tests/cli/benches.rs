//! Criterion benches behind the gate: one changed line, and a bench target is a worker.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use cargo_infergate::paired::Program;
use infergate::engine::LoadRequest;
use infergate_core::case::Case;
use infergate_core::worker::{Client, Loaded, Sampling, Timeouts, WorkerFile};
use infergate_receipts::{PairedReceipt, read};

use crate::sandbox::{Sandbox, error, ran, stdout};
use crate::support;

static GOES_ON: AtomicBool = AtomicBool::new(false);

/// The example's worker, loaded.
fn load() -> (Client<'static>, Loaded) {
    load_of(&support::example("criterion_benches"))
}

fn load_of(program: &Path) -> (Client<'static>, Loaded) {
    let file = WorkerFile::open(program).expect("an example");
    let request = LoadRequest::default();
    let (mut client, _) = Client::spawn(&file, &request, Timeouts::default(), &GOES_ON).expect("a worker");
    let loaded = client.load(&request, None).expect("benches");
    (client, loaded)
}

fn case(name: &str) -> Case {
    format!("bench:{name}").parse().expect("a bench")
}

#[test]
fn a_worker_lists_its_benches_by_criterions_names() {
    let (_, loaded) = load();
    let names: Vec<String> = loaded.benches.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        ["sum", "told", "square/7", "manifest", "fib/10", "fib/80", "sort/small", "sort/lent", "sort/large drop"]
    );
    assert_eq!((loaded.engine.name.as_str(), loaded.engine.model.as_str()), ("criterion", "criterion_benches"));
}

/// Of a file of cargo's that is without its hash; of another one the whole name.
#[test]
fn benches_are_of_the_target_that_their_program_is_named_by() {
    let (sandbox, example) = (Sandbox::new(), support::example("criterion_benches"));
    for (name, target) in [("own-parse", "own-parse"), ("own-parse-0123456789abcdef", "own-parse")] {
        let program = sandbox.path(name);
        fs::hard_link(&example, &program).or_else(|_| fs::copy(&example, &program).map(drop)).expect("a program");
        assert_eq!(load_of(&program).1.engine.model, target);
    }
}

#[test]
fn benches_are_prepared_and_sampled_in_any_order() {
    in_any_order(load());
}

/// The worker begins again, and knows what it was told.
#[cfg(unix)]
#[test]
fn set_up_that_works_once_works_for_each_bench() {
    let sandbox = Sandbox::new();
    in_any_order(load_of(&with_words(&sandbox, "once", "once")));
}

fn in_any_order((mut client, loaded): (Client<'static>, Loaded)) {
    for &bench in loaded.benches.iter().chain(loaded.benches.iter().rev()) {
        let prepared = client.prepare(bench, None).expect("prepared");
        let says = ["fib/", "square/", "manifest"].iter().any(|name| bench.to_string().starts_with(name));
        assert_eq!(prepared.output.ids.len(), if says { 8 } else { 0 }, "{bench}");
    }
    for name in ["sort/lent", "sum", "fib/80", "fib/80", "fib/10"] {
        let samples = client.sample(case(name), Sampling::of(3, 50)).expect("samples");
        assert_eq!(samples.samples_ns.len(), 3, "{name}");
        assert!(samples.samples_ns.iter().all(|sample| sample.len() == 1 && sample[0] > 0), "{name}: {samples:?}");
    }
}

/// A worker that cannot call it twice is started anew, and what it made is gone then. A `final_summary` in its midst ends nothing.
#[cfg(unix)]
#[test]
fn a_main_of_its_own_is_a_worker_up_to_its_end() {
    let sandbox = Sandbox::new();
    let made = sandbox.path("made");
    fs::create_dir(&made).expect("a folder");
    let word = format!("folder TMPDIR={}", made.display());
    let (mut client, loaded) = load_of(&with_words_of("own_main", &sandbox, "folder", &word));
    let names: Vec<String> = loaded.benches.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["told/3", "told/5", "last"]);
    let says = |name: &str| if name == "last" { 0 } else { 8 };
    for name in ["last", "told/3", "told/5"] {
        assert_eq!(client.prepare(case(name), None).expect("prepared").output.ids.len(), says(name), "{name}");
    }
    for (name, ns) in [("told/5", 5), ("told/3", 3), ("last", 7), ("told/5", 5)] {
        assert_eq!(
            client.sample(case(name), Sampling::of(2, 10)).expect("samples").samples_ns,
            [[ns * 10], [ns * 10]],
            "{name}"
        );
        assert_eq!(fs::read_dir(&made).expect("a folder").count(), 1, "{name}");
    }
    drop(client);
    assert_eq!(fs::read_dir(&made).expect("a folder").count(), 0);
    let mut gate = sandbox.process(&["gate", "--threads=1"]);
    for side in ["--base-bin", "--head-bin"] {
        gate.arg(side).arg(support::example("own_main"));
    }
    gate.env("EXAMPLE_BENCHES", "endless");
    let said = error(ran(gate));
    assert!(said.contains("or to end with final_summary()"), "{said}");
}

/// Of more benches than a gate compares some can be chosen.
#[cfg(unix)]
#[test]
fn a_bench_target_may_have_more_benches_than_a_gate_compares() {
    let sandbox = Sandbox::new();
    let line = error(gate(&sandbox, "many", "many", &[]));
    assert!(line.contains("4109 benches are more than the 4000 that one gate compares"), "{line}");
    let said = gate(&sandbox, "many", "many", &["--cases=many/4099"]).success();
    assert!(stdout(&said).contains("many/4099"), "{}", stdout(&said));
}

/// As under `cargo bench`: what it reads lies in its package, and base's lies in base's checkout.
#[test]
fn a_bench_runs_in_the_folder_of_its_package() {
    let output = |text: &str| {
        let package = Sandbox::new();
        package.write("Cargo.toml", text);
        let program = Program::new(support::example("criterion_benches"));
        let file = Program { package: Some(package.path("")), ..program }.open().expect("an example");
        let request = LoadRequest::default();
        let (mut client, _) = Client::spawn(&file, &request, Timeouts::default(), &GOES_ON).expect("a worker");
        client.load(&request, None).expect("benches");
        client.prepare(case("manifest"), None).expect("prepared").output
    };
    assert_eq!(output("one"), output("one"));
    assert_ne!(output("one"), output("another"));
}

/// A program of this name that is the example with words for its benches.
#[cfg(unix)]
fn with_words(sandbox: &Sandbox, name: &str, words: &str) -> std::path::PathBuf {
    with_words_of("criterion_benches", sandbox, name, words)
}

#[cfg(unix)]
fn with_words_of(example: &str, sandbox: &Sandbox, name: &str, words: &str) -> std::path::PathBuf {
    let program = support::example(example);
    let script = format!("#!/bin/sh\nEXAMPLE_BENCHES={words} exec '{}' \"$@\"\n", program.display());
    sandbox.program(&format!("{name}.sh"), &script)
}

/// Runs the example on both sides, each with words of its own.
#[cfg(unix)]
fn gate(sandbox: &Sandbox, base: &str, head: &str, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut gate = sandbox.process(&["gate", "--threads=1", "--out=paired.json"]);
    for (side, words) in [("base", base), ("head", head)] {
        gate.arg(format!("--{side}-bin")).arg(with_words(sandbox, side, words));
    }
    gate.args(arguments);
    ran(gate)
}

/// The gate of all shares says what that of the whole suite says.
#[cfg(unix)]
#[test]
fn a_share_whose_only_bench_is_new_or_fails_costs_the_others_nothing() {
    let sandbox = Sandbox::new();
    let share = |number: usize, base: &str, code: i32| {
        gate(&sandbox, base, "other-output", &["--cases=*u*", &format!("--shard={number}/2")]).code(code);
        fs::rename(sandbox.path("paired.json"), sandbox.path(&format!("{number}.json"))).expect("a receipt");
    };
    share(1, "no-sum", 1);
    for (base, why) in [("no-sum", "sum: not compared, only head has it"), ("no-loop", "sum: not compared, it fails")] {
        share(2, base, 4);
        assert!(read::<PairedReceipt>(&sandbox.path("2.json")).expect("it can be read").cases.is_empty());
        let merged = stdout(&sandbox.run(&["gate", "--receipt=1.json", "--receipt=2.json"]).code(1));
        assert!(merged.contains("square/7: returns something else") && merged.contains(why), "{merged}");
    }
}

/// Also where the last request is answered in the midst of it.
#[cfg(unix)]
#[test]
fn what_a_benchs_function_made_goes_at_the_end() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("made");
    fs::create_dir(&folder).expect("a folder");
    let word = format!("folder,many TMPDIR={}", folder.display());
    let (mut client, _) = load_of(&with_words(&sandbox, "folder", &word));
    client.prepare(case("many/7"), None).expect("prepared");
    let made = || fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(made(), 1);
    drop(client);
    assert_eq!(made(), 0);
}
