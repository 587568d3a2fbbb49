//! `memory`: leaks are called and located, what only looks like one passes, and a run that was cut short never does.

use infergate_receipts::{Evidence, MemoryEvidence, MemoryReceipt, Outcome, Verdict, Witness, read};

use crate::revisions::{WORKER, gate, repository};
use crate::sandbox::{Sandbox, decision, stderr, stdout};
use crate::support;

/// The memory phase of a control, and what it made of it.
fn follow(control: &str, arguments: &[&str]) -> (Sandbox, String, i32) {
    let sandbox = Sandbox::new();
    let worker = support::example("leaky_engine");
    let mut process = sandbox.process(&["memory", "--cases=prefill/p8", "--json=verdict.json", "--out=memory.json"]);
    process.arg("--model").arg(format!("control:{control}")).arg("--worker").arg(worker).args(arguments);
    let assert = assert_cmd::Command::from_std(process).assert();
    let code = assert.get_output().status.code().expect("it ended by itself");
    let said = stdout(&assert);
    (sandbox, said, code)
}

fn verdict(sandbox: &Sandbox) -> Verdict {
    serde_json::from_str(&std::fs::read_to_string(sandbox.path("verdict.json")).expect("a file")).expect("a verdict")
}

fn row(verdict: &Verdict, witness: Witness) -> (Outcome, MemoryEvidence) {
    let seen = verdict.rows.iter().find_map(|row| match &row.evidence {
        Evidence::Memory(memory) if memory.witness == witness => Some((row.outcome, memory.clone())),
        _ => None,
    });
    seen.expect("a row")
}

fn receipt(sandbox: &Sandbox) -> MemoryReceipt {
    read::<MemoryReceipt>(&sandbox.path("memory.json")).expect("a receipt")
}

#[track_caller]
fn assert_heap_leak(control: &str, bytes: std::ops::RangeInclusive<f64>, place: &str) {
    let (sandbox, said, code) = follow(control, &[]);
    assert_eq!(code, 1, "{said}");
    let (outcome, heap) = row(&verdict(&sandbox), Witness::Heap);
    assert_eq!(outcome, Outcome::Leak, "{said}");
    assert!(bytes.contains(&heap.slope_bytes.expect("a rate")), "{heap:?}");
    let sites = receipt(&sandbox).memory.sites;
    let first = sites.first().unwrap_or_else(|| panic!("a place: {said}"));
    assert!(first.frames.iter().any(|frame| frame.contains(place)), "{first:?}");
    assert!(said.contains(place), "{said}");
    assert!(!said.contains(env!("CARGO_MANIFEST_DIR")), "no local folder is named: {said}");
}

#[test]
fn four_kib_a_run_are_called_and_located() {
    assert_heap_leak("heap", 4096.0..=4096.0, "tests/programs/leaky_engine.rs:");
}

#[test]
fn one_byte_a_run_is_called() {
    assert_heap_leak("byte", 1.0..=1.0, "tests/programs/leaky_engine.rs:");
}

#[cfg(target_os = "linux")]
#[test]
fn mapped_memory_is_called_by_the_resident_set_alone() {
    let (sandbox, said, code) = follow("mapped", &[]);
    assert_eq!(code, 1, "{said}");
    let verdict = verdict(&sandbox);
    assert_eq!(row(&verdict, Witness::Heap).0, Outcome::Pass, "{said}");
    let (outcome, resident) = row(&verdict, Witness::Resident);
    assert_eq!(outcome, Outcome::Leak, "{said}");
    assert!((60_000.0..70_000.0).contains(&resident.slope_bytes.expect("a slope")), "{resident:?}");
    let record = receipt(&sandbox).memory;
    assert_eq!((record.asked_runs, record.runs.len()), (100, 200), "confirmed by as many runs again");
}

#[cfg(target_os = "linux")]
#[test]
fn what_no_allocator_counts_is_held_by_the_model_too() {
    let held = |control: &str| {
        let (sandbox, said, code) = follow(control, &["--runs=0"]);
        assert!([0, 3].contains(&code), "{said}");
        receipt(&sandbox).held
    };
    let (steady, copy) = (held("steady"), held("copy"));
    assert!(steady.keys().eq([
        "anonymous_bytes_at_rest",
        "anonymous_bytes_loaded",
        "live_bytes_at_rest",
        "live_bytes_loaded",
        "peak_live_bytes_loading",
        "peak_resident_bytes"
    ]));
    for (name, counter) in steady {
        let more = copy[&name].min.saturating_sub(counter.min);
        let is_counted = name.contains("live");
        assert_eq!(more > 60 << 20, !is_counted, "{name}: {more}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_are_never_closed_are_called() {
    let (sandbox, said, code) = follow("files", &[]);
    assert_eq!(code, 1, "{said}");
    let verdict = verdict(&sandbox);
    assert_eq!(row(&verdict, Witness::Heap).0, Outcome::Pass, "{said}");
    let (outcome, files) = row(&verdict, Witness::OpenFiles);
    assert_eq!((outcome, files.count_per_run, files.slope_bytes), (Outcome::Leak, Some(1.0), None), "{said}");
    assert!(said.contains("open files rise by 1 a run over 200 runs"), "{said}");
    assert!(
        verdict
            .rows
            .iter()
            .all(|row| !matches!(&row.evidence, Evidence::Memory(memory) if memory.witness == Witness::Threads))
    );
}

/// The next file would be what counts them.
#[cfg(target_os = "linux")]
#[test]
fn a_leak_that_takes_the_last_file_descriptor_does_not_pass() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::new();
    let program = support::example("leaky_engine");
    let script = format!("#!/bin/sh\nulimit -n 160 && exec '{}' \"$@\"\n", program.display());
    let worker = sandbox.write("limited.sh", &script);
    std::fs::set_permissions(&worker, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let mut process = sandbox.process(&["memory", "--cases=prefill/p8", "--model=control:files", "--out=memory.json"]);
    process.arg("--worker").arg(worker);
    let said = assert_cmd::Command::from_std(process).assert().code(3);
    assert!(decision(&said).contains("invalid"), "{}", stdout(&said));
    let record = receipt(&sandbox).memory;
    assert!(record.partial && record.runs.open_files.len() > 100, "{record:?}");
    let why = record.invalid.join("; ");
    assert!(why.contains("this is no longer known: ") && why.contains("open files ("), "{why}");
}

#[test]
fn a_cache_that_fills_is_a_plateau() {
    let (sandbox, said, code) = follow("cache", &[]);
    assert_eq!(code, 0, "{said}");
    let (outcome, heap) = row(&verdict(&sandbox), Witness::Heap);
    assert_eq!(outcome, Outcome::Plateau, "{said}");
    assert!(heap.kept_bytes.is_some_and(|bytes| (200_000..230_000).contains(&bytes)), "{heap:?}");
    let memory = receipt(&sandbox).memory;
    assert_eq!((memory.runs.len(), memory.sites.len()), (200, 0));
}

#[test]
fn a_leak_behind_a_cache_is_called_and_located() {
    assert_heap_leak("cache-and-leak", 100.0..=100.0, "tests/programs/leaky_engine.rs:");
}

#[test]
fn a_timed_worker_shows_its_resident_set_and_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let worker = support::example("fake_engine");
    let mut process = sandbox.process(&["memory", "--model=fake", "--runs=25"]);
    process.arg("--worker").arg(worker);
    let assert = assert_cmd::Command::from_std(process).assert().success();
    let said = stdout(&assert);
    assert!(said.contains("the heap is not counted"), "{said}");
    assert!(decision(&assert).starts_with("verdict: pass"), "{said}");
}

#[test]
fn a_worker_that_dies_leaves_what_was_seen_and_never_passes() {
    let sandbox = Sandbox::new();
    let worker = support::example("fake_engine");
    let mut process =
        sandbox.process(&["memory", "--model=fake:exits-late", "--case=generate/p128-o64", "--out=memory.json"]);
    process.arg("--worker").arg(worker);
    let assert = assert_cmd::Command::from_std(process).assert().code(3);
    let said = stdout(&assert);
    assert!(decision(&assert).contains("invalid") && said.contains("ended early"), "{said}");
    let record = receipt(&sandbox).memory;
    assert!(record.partial && record.runs.len() < 100 && !record.runs.is_empty(), "{record:?}");
    assert!(record.invalid.iter().any(|why| why.contains("ended early")), "{:?}", record.invalid);
}

/// The worker without dependencies, which does `then` where its memory is asked for.
fn asked_for_its_memory(then: &str) -> String {
    let samples = "} else {\n            let count";
    let memory = format!("}} else if line.contains(\"\\\"op\\\":\\\"memory\\\"\") {{\n            {then}\n        ");
    WORKER.replace(samples, &format!("{memory}{samples}"))
}

/// Its resident set grows by so much with each run.
fn that_grows_by(bytes_per_run: u64) -> String {
    let begin = "for line in io";
    let worker = asked_for_its_memory(&format!(
        r###"rss_bytes += if line.contains("generate") {{ {bytes_per_run} }} else {{ 0 }};
            format!(r##"{{{{"sample":{{{{"rss_bytes":{{rss_bytes}}}}}},"missing":[]}}}}"##)"###
    ));
    worker.replace(begin, &format!("let mut rss_bytes: u64 = 1 << 30;\n    {begin}"))
}

#[test]
fn without_a_bench_target_that_counts_the_gate_follows_the_resident_set_of_the_timed_one() {
    let sandbox = repository();
    for (bytes_per_run, code, said) in [(0, 0, "verdict: pass"), (65_536, 1, "verdict: leak")] {
        sandbox.write("bench.rs", &that_grows_by(bytes_per_run));
        let gated = gate(&sandbox, "HEAD", &["--memory-case=generate/p8-o2"]).code(code);
        assert!(decision(&gated).contains(said), "{}", stdout(&gated));
        let note = "no bench target 'memory': allocations are not counted, leaks are looked for in the resident set";
        assert!(stderr(&gated).contains(note), "{}", stderr(&gated));
    }

    // One that nobody named and that does not fit refuses nothing.
    let gated = gate(&sandbox, "HEAD", &["--memory-case=generate/p512-o64"]).success();
    assert!(stderr(&gated).contains("no leak is looked for: memory.case"), "{}", stderr(&gated));
}

#[test]
fn a_head_that_dies_where_its_memory_is_asked_for_is_broken_and_its_times_are_shown() {
    let sandbox = repository();
    sandbox.write("bench.rs", &asked_for_its_memory("std::process::exit(9)"));
    let gated = gate(&sandbox, "HEAD", &["--memory-case=generate/p8-o2"]).code(3);
    let said = stdout(&gated);
    assert!(decision(&gated).contains("head's memory is not followed: ") && said.contains("prefill/"), "{said}");
}
