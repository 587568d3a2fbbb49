//! A run compared with a file: another run, or a baseline.

use infergate_judge::{Policy, compare, newest_session};
use infergate_receipts::{Outcome, Receipt, ReceiptOrBaseline};

use crate::gate::support::{decode_baseline, notes, output, row, run, time};

fn file(receipt: &Receipt) -> ReceiptOrBaseline {
    ReceiptOrBaseline::Receipt(Box::new(receipt.clone()))
}

fn decode(ns: u64) -> Receipt {
    run(&[("decode/p128", &[ns, ns, ns])])
}

#[test]
fn another_output_than_that_of_the_base_run_fails() {
    let mut other = decode(1000);
    other.cases[0].output = output(vec![0, 7]);
    let verdict = compare(&file(&decode(1000)), &other, &Policy::default()).expect("a verdict");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::OutputChanged, 1));
}

#[test]
fn a_baseline_as_base_judges_as_the_gate_does() {
    let base = ReceiptOrBaseline::Baseline(Box::new(decode_baseline(&[1000; 8])));
    let verdict = compare(&base, &decode(1200), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::Regressed);
    assert!(verdict.notes.is_empty(), "{:?}", verdict.notes);
}

#[test]
fn the_newest_session_of_a_baseline_is_a_run() {
    let old = ReceiptOrBaseline::Baseline(Box::new(decode_baseline(&[1000; 8])));
    let new = newest_session(&decode_baseline(&[1000, 1000, 1500])).expect("a session");
    let verdict = compare(&old, &new, &Policy::default()).expect("a verdict");
    let found = row(&verdict, "decode/p128", "itl_ns");
    assert_eq!((found.outcome, time(found).head_ns), (Outcome::Regressed, Some(1500.0)));
    let verdict = compare(&file(&decode(1000)), &new, &Policy::default()).expect("a verdict");
    assert_eq!(row(&verdict, "decode/p128", "itl_ns").outcome, Outcome::Advisory);
}

#[test]
fn a_base_that_was_cut_short_is_named() {
    let mut base = decode(1000);
    base.partial = true;
    let verdict = compare(&file(&base), &decode(1000), &Policy::default()).expect("a verdict");
    assert!(notes(&verdict).iter().any(|note| note.contains("base run was cut short")), "{:?}", verdict.notes);
    let verdict = compare(&file(&decode(1000)), &base, &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::Partial);
}
