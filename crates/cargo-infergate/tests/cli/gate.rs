//! The gate's exit codes.

use crate::sandbox::{Sandbox, decision, error, stderr, stdout};

#[test]
fn without_a_baseline_time_is_advisory_unless_one_is_required() {
    let sandbox = Sandbox::new();
    let said = sandbox.measure("gate", "fake", &[]).code(0);
    assert!(stdout(&said).contains("`gate --against HEAD` compares your next change"), "{}", stdout(&said));
    assert!(decision(&said).starts_with("verdict: pass (exit 0): "), "{}", decision(&said));
    let unjudged = " without an output to compare with, no baseline: time is advisory";
    assert!(decision(&said).contains(unjudged), "{}", decision(&said));

    let said = sandbox.run(&["gate", "--receipt", "target/infergate/receipt.json", "--require-baseline"]).code(4);
    assert!(decision(&said).starts_with("verdict: not comparable (exit 4): prefill"), "{}", decision(&said));
}

#[test]
fn a_blessed_session_is_compared_with() {
    let sandbox = Sandbox::new();
    sandbox.measure("bless", "fake", &[]).success();
    let said = sandbox.gate("fake:slow", &[]).code(0);
    assert!(stdout(&said).contains("1 session of 1 day: time is advisory, 7 more days needed"), "{}", stdout(&said));

    let said = sandbox.gate("fake:other-output", &[]).code(1);
    assert!(decision(&said).starts_with("verdict: output changed (exit 1)"), "{}", decision(&said));
}

#[test]
fn with_eight_sessions_a_slowdown_fails_and_the_same_passes() {
    let sandbox = Sandbox::new();
    sandbox.baseline(8);
    let said = sandbox.gate("fake", &[]).code(0);
    assert!(stdout(&said).contains("within limit"), "{}", stdout(&said));
    let passed = " with the same output, none slower by more than 10 %";
    assert!(decision(&said).contains(passed), "{}", decision(&said));

    let said = sandbox.gate("fake:slow", &[]).code(1);
    assert!(
        decision(&said).starts_with("verdict: regressed (exit 1): decode"),
        "the reason names the case: {}",
        stdout(&said)
    );
}

#[test]
fn a_missed_target_fails_without_any_baseline() {
    let sandbox = Sandbox::new();
    sandbox.write("infergate.toml", "targets = ['prefill/p8 ttft_ms < 1000', 'decode/* tokens_per_s > 1000']\n");
    let said = sandbox.gate("fake", &[]).code(1);
    assert!(
        decision(&said).starts_with("verdict: target missed (exit 1): decode misses its target "),
        "{}",
        decision(&said)
    );
    sandbox.gate("fake", &["--targets", "prefill/p8 ttft_ms < 1000"]).code(0);
}

#[test]
fn an_engine_that_does_not_repeat_itself_is_invalid() {
    let sandbox = Sandbox::new();
    let said = sandbox.measure("gate", "fake:unrepeatable", &[]).code(3);
    assert!(
        decision(&said).starts_with("verdict: invalid (exit 3): nothing is judged: prefill/p8: output token 1"),
        "{}",
        stdout(&said)
    );
}

#[test]
fn a_partial_receipt_never_passes() {
    let sandbox = Sandbox::new();
    let mut receipt = sandbox.receipt("fake", "receipt.json");
    receipt.partial = true;
    sandbox.save(&receipt, "receipt.json");
    let said = sandbox.run(&["gate", "--receipt", "receipt.json"]).code(3);
    assert!(decision(&said).starts_with("verdict: partial (exit 3)"), "{}", decision(&said));
    sandbox.run(&["compare", "receipt.json", "receipt.json"]).code(3);
}

#[test]
fn a_worker_that_dies_is_an_error_and_leaves_no_receipt() {
    let sandbox = Sandbox::new();
    let line = error(sandbox.measure("gate", "fake:dies", &[]));
    assert!(line.contains("the worker ended early (exit status: 9)"), "{line}");
    assert_eq!(sandbox.files(), [""; 0]);
}

#[test]
fn a_baseline_of_another_seed_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.baseline(1);
    let mut receipt = sandbox.receipt("fake", "other.json");
    receipt.seed = 7;
    sandbox.save(&receipt, "other.json");
    let line = error(sandbox.run(&["gate", "--receipt", "other.json"]));
    assert!(line.contains("the baseline's seed is '1' and the run's is '7'"), "{line}");
}

#[test]
fn what_to_measure_makes_no_sense_beside_a_receipt() {
    let sandbox = Sandbox::new();
    sandbox.receipt("fake", "head.json");
    for flags in [["--model", "fake"], ["--runs", "9"], ["--out", "other.json"]] {
        let said = sandbox.run(&[&["gate", "--receipt", "head.json"], flags.as_slice()].concat()).code(2);
        assert!(stderr(&said).contains("cannot be used with"), "{}", stderr(&said));
    }
}
