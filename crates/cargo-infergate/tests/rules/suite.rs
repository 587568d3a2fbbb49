//! A suite runs fresh worker processes and says in a receipt, or in one line, what came of it.

use std::sync::atomic::{AtomicBool, Ordering};

use cargo_infergate::paired::of_shard;
use cargo_infergate::suite::{self, SuiteRequest};
use infergate::engine::LoadRequest;
use infergate_core::case::Case;
use infergate_core::memory::leak::judge;
use infergate_core::memory::{self, MemoryRequest};
use infergate_core::progress::Progress;
use infergate_core::worker;
use infergate_core::worker::{Program, Timeouts};
use infergate_load::plan::shard::Shard;
use infergate_receipts::{Outcome, Receipt};

fn request(worker: &str, model: &str) -> SuiteRequest {
    SuiteRequest {
        worker: Program::new(crate::support::example(worker)),
        prober: Some(env!("CARGO_BIN_EXE_cargo-infergate").into()),
        load: LoadRequest { model: model.into(), ..LoadRequest::default() },
        cases: vec!["prefill/p128".into(), "decode/p128".into(), "generate/p128-o8".into()],
        runs: 2,
        seconds_per_case: 0.0,
        prompt_text: None,
        memory_case: None,
        keep_text: false,
    }
}

fn run(request: &SuiteRequest) -> anyhow::Result<Receipt> {
    worker::trust_virtual_clocks();
    Ok(suite::run(request, &mut |_| {}, &mut |_| {}, &AtomicBool::new(false))?)
}

#[test]
fn a_receipt_says_of_which_features_it_is_and_what_the_machine_did_before_and_behind_it() {
    let mut request = request("fake_engine", "fake");
    request.worker.features = "--features=cuda".into();
    let receipt = run(&request).expect("runs");
    assert_eq!(receipt.build.features, "--features=cuda");
    assert!(receipt.probes.is_some_and(|probes| probes.after.is_some()));
}

#[test]
fn the_default_is_the_gate_suite() {
    let mut request = request("own_engine", "bytes");
    request.cases = Vec::new();
    request.runs = 1;
    let receipt = run(&request).expect("runs");
    let ids: Vec<String> = receipt.cases.iter().map(|case| case.id.to_string()).collect();
    assert_eq!(ids, ["prefill/p128", "prefill/p512", "decode/p128", "decode/p512", "generate/p128-o64"]);
}

#[test]
fn an_interrupted_suite_keeps_what_it_has_and_is_partial() {
    let cancelled = AtomicBool::new(false);
    let mut cancel_at_third_step = |progress: &Progress| {
        if progress.label.contains("process 1 of 2: generate") {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    worker::trust_virtual_clocks();
    let receipt = suite::run(&request("fake_engine", "fake"), &mut |_| {}, &mut cancel_at_third_step, &cancelled);
    let receipt = receipt.expect("keeps");
    assert!(receipt.partial);
    assert!(receipt.cases.len() >= 2 && receipt.cases.iter().all(|case| case.processes.len() == 1));
}

/// Whoever ends a run does not wait for its probes, whatever became of them.
#[cfg(unix)]
#[test]
fn probes_that_hang_hold_nothing_up() {
    let hangs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/workers/silent.sh");
    let request = SuiteRequest { prober: Some(hangs), ..request("fake_engine", "fake") };
    let cancelled = AtomicBool::new(false);
    let mut cancel = |_: &Progress| cancelled.store(true, Ordering::Relaxed);
    let error = suite::run(&request, &mut |_| {}, &mut cancel, &cancelled).expect_err("interrupted");
    assert!(error.to_string().contains("nothing was measured"), "{error}");
}

/// What is known now and then ends the phase with what was seen, and passes nothing.
#[cfg(unix)]
#[test]
fn a_memory_that_is_no_longer_known_ends_the_phase() {
    let forgets = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/workers/forgets.sh");
    let request = MemoryRequest {
        worker: Program::new(forgets),
        load: LoadRequest { model: "m".into(), ..LoadRequest::default() },
        counted: Vec::new(),
        case: "generate/p2-o2".parse().expect("a case"),
        runs: 20,
        prompt_text: None,
        timeouts: Timeouts::default(),
    };
    let phase = memory::run(&request, &mut |_| {}, &mut |_| {}, &AtomicBool::new(false));
    let record = phase.expect("what was seen").memory;
    record.validate().expect("a record that can be judged");
    assert_eq!((record.partial, record.runs.rss_bytes.len()), (true, 10));
    let said = record.invalid.join("; ");
    assert!(said.contains("after run 11 this is no longer known: resident bytes (4096000 before)"), "{said}");
    let outcomes: Vec<Outcome> = judge(&record).iter().map(|row| row.outcome).collect();
    assert_eq!(outcomes, [Outcome::Invalid; 2]);
}

#[test]
fn what_the_model_said_is_kept_only_where_that_was_asked_for() {
    let asked = |keep_text| run(&SuiteRequest { keep_text, ..request("fake_engine", "fake:speaks") }).expect("runs");
    for case in asked(true).cases {
        let words: String = case.output.ids.iter().map(|id| format!("<{id}>")).collect();
        assert_eq!(case.text, Some(words), "{}", case.id);
    }
    assert!(asked(false).cases.iter().all(|case| case.text.is_none()));
    let silent = run(&SuiteRequest { keep_text: true, ..request("fake_engine", "fake") }).expect("runs");
    assert!(silent.cases.iter().all(|case| case.text.is_none()), "it has no tokenizer");
}

/// A process can list its benches in another order than the next one.
#[test]
fn which_share_takes_a_bench_does_not_depend_on_where_it_is_listed() {
    let listed = |names: &[&str]| -> Vec<Case> { names.iter().map(|name| name.parse().expect("a bench")).collect() };
    let (one, other) = (listed(&["bench:b", "bench:a", "bench:c"]), listed(&["bench:c", "bench:b", "bench:a"]));
    let taken = |index, suite: &[Case]| of_shard(Shard { index, count: 2 }, suite).expect("some");
    for index in [0, 1] {
        assert_eq!(taken(index, &one), taken(index, &other));
    }
    assert_eq!(taken(0, &one), listed(&["bench:a", "bench:c"]));
}
