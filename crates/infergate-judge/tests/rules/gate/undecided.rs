//! What may pass although it is undecided: what noise left open, and nothing that is missing or cannot be compared.

use infergate_judge::paired::{Policy, judge, judge_without_power};
use infergate_receipts::{Evidence, Outcome, PairedReceipt, Subject, Verdict, VerdictRow};

use crate::gate::support::{allocations, measured, row};

/// Noise alone, where `inconclusive = "warn"`.
fn warned(receipt: &PairedReceipt) -> Verdict {
    judge(receipt, &policy())
}

fn policy() -> Policy {
    Policy { inconclusive_passes: true, ..Policy::default() }
}

/// Three blocks, too few to decide anything.
fn undecided() -> PairedReceipt {
    let receipt = measured("decode/p8", 10_000_000, &[0.0; 3]);
    assert_eq!(judge(&receipt, &Policy::default()).exit_code, 3);
    receipt
}

#[track_caller]
fn assert_is(verdict: &Verdict, outcome: Outcome, exit_code: i32) {
    assert_eq!((verdict.verdict, verdict.exit_code), (outcome, exit_code), "{:#?}", verdict.rows);
}

#[test]
fn a_time_without_enough_evidence_passes() {
    let verdict = warned(&undecided());
    assert_is(&verdict, Outcome::Inconclusive, 0);
    assert!(verdict.passes_undecided());
}

#[test]
fn a_case_that_was_never_timed_does_not_pass() {
    assert_is(&warned(&measured("decode/p8", 10_000_000, &[])), Outcome::Inconclusive, 3);
}

#[test]
fn a_counter_that_is_no_longer_counted_does_not_pass() {
    for mut receipt in [measured("decode/p8", 10_000_000, &[0.0; 8]), undecided()] {
        let before = warned(&receipt);
        assert_eq!(before.exit_code, 0);
        receipt.base.counted = allocations("decode/p8", 564, 564);
        let verdict = warned(&receipt);
        assert_is(&verdict, Outcome::Inconclusive, 3);
        assert_eq!(verdict.deciding(), Some(row(&verdict, "decode/p8", "allocations_per_token")));
    }
}

#[test]
fn what_cannot_be_compared_decides_beside_what_is_undecided() {
    let mut receipt = undecided();
    let mut other = measured("prefill/p8", 10_000_000, &[]).cases.remove(0);
    other.timed = false;
    other.base_output.prompt_sha256 = Some("one".into());
    other.head_output.prompt_sha256 = Some("another".into());
    other.head_output.ids = vec![99];
    receipt.cases.push(other);
    assert_is(&judge(&receipt, &Policy::default()), Outcome::Inconclusive, 3);
    assert_is(&warned(&receipt), Outcome::NotComparable, 4);
}

#[test]
fn a_run_that_was_cut_short_or_broke_an_invariant_does_not_pass() {
    let mut receipt = undecided();
    receipt.partial = true;
    assert_is(&warned(&receipt), Outcome::Partial, 3);
    receipt.invalid.push("decode/p8: why".into());
    assert_is(&warned(&receipt), Outcome::Invalid, 3);
    // What fails in head alone is no noise, whatever else is open.
    let mut receipt = undecided();
    receipt.broken.push("bench:fib: panicked".into());
    let verdict = judge_without_power(&receipt, &policy());
    assert_is(&verdict, Outcome::Invalid, 3);
    assert!(row(&verdict, "decode/p8", "itl_ns").is_undecided());
    // Open after the last block, and then cut short: nothing but the receipt says so.
    let mut receipt = measured("decode/p8", 10_000_000, &[[-0.4, 0.5]; 20].concat());
    assert_eq!(warned(&receipt).exit_code, 0);
    receipt.partial = true;
    let verdict = warned(&receipt);
    assert!(verdict.exit_code == 3 && verdict.rows.iter().any(|row| row.is_undecided()), "{:#?}", verdict.rows);
}

/// It is counted exactly: more runs settle it, and a quieter machine does not.
#[test]
fn a_heap_that_still_grows_does_not_pass() {
    let memory = |measure: &str| {
        let evidence = serde_json::json!({ "measure": measure, "slope_bytes": 4096.0 });
        let evidence = Evidence::Memory(serde_json::from_value(evidence).expect("evidence"));
        Verdict::of(vec![VerdictRow::new(Subject::Model, Outcome::Inconclusive, evidence)], Vec::new())
    };
    assert_is(&memory("heap").passing_undecided(), Outcome::Inconclusive, 3);
    assert_is(&memory("resident").passing_undecided(), Outcome::Inconclusive, 0);
}

/// A budget that held too few blocks to call anything is not noise.
#[test]
fn a_slowdown_that_lies_above_its_limit_does_not_pass_for_want_of_blocks() {
    let cut = |slower: f64| {
        let mut receipt = measured("decode/p8", 10_000_000, &[slower; 6]);
        receipt.cases[0].widest = receipt.cases[0].threshold;
        PairedReceipt { out_of_time: true, ..receipt }
    };
    assert_is(&warned(&cut(0.5)), Outcome::Inconclusive, 3);
    let verdict = judge(&cut(0.5), &Policy::default());
    let forged = Verdict { exit_code: 0, ..verdict };
    assert!(!forged.passes_undecided());
    assert_is(&warned(&cut(0.019)), Outcome::Inconclusive, 0);
}

#[test]
fn what_is_worse_than_undecided_stays_what_it_is() {
    let mut receipt = undecided();
    receipt.cases[0].head_output.ids = vec![99];
    assert_is(&warned(&receipt), Outcome::OutputChanged, 1);
}
