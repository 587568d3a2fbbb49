//! Two files compared: receipts, baselines, or one of each.

use infergate_judge::{Policy, compare};
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
    let verdict = compare(&file(&decode(1000)), &file(&other), &Policy::default()).expect("a verdict");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::OutputChanged, 1));
}

#[test]
fn a_baseline_as_base_judges_as_the_gate_does() {
    let base = ReceiptOrBaseline::Baseline(Box::new(decode_baseline(&[1000; 8])));
    let verdict = compare(&base, &file(&decode(1200)), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::Regressed);
    assert!(verdict.notes.is_empty(), "{:?}", verdict.notes);
}

#[test]
fn a_baseline_as_head_is_its_newest_session() {
    let old = ReceiptOrBaseline::Baseline(Box::new(decode_baseline(&[1000; 8])));
    let new = ReceiptOrBaseline::Baseline(Box::new(decode_baseline(&[1000, 1000, 1500])));
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
    let verdict = compare(&file(&base), &file(&decode(1000)), &Policy::default()).expect("a verdict");
    assert!(notes(&verdict).iter().any(|note| note.contains("base run was cut short")), "{:?}", verdict.notes);
    let verdict = compare(&file(&decode(1000)), &file(&base), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::Partial);
}
