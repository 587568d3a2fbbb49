//! Two files compared: receipts, baselines, or one of each.

use infergate_judge::{Policy, compare};
use infergate_receipts::{Outcome, Receipt, ReceiptOrBaseline};

use crate::gate::support::{decode_baseline, machine, notes, output, row, run};

fn file(receipt: &Receipt) -> ReceiptOrBaseline {
    ReceiptOrBaseline::Receipt(Box::new(receipt.clone()))
}

fn decode(ns: u64) -> Receipt {
    run(&[("decode/p128", &[ns, ns, ns])])
}

#[test]
fn one_session_against_one_shows_time_and_judges_output() {
    let verdict = compare(&file(&decode(1000)), &file(&decode(3000)), &Policy::default()).expect("a verdict");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Pass, 0));
    let time = row(&verdict, "decode/p128", "itl_ns");
    assert_eq!(time.outcome, Outcome::Advisory);
    assert!((crate::gate::support::time(time).ratio.expect("shown") - 3.0).abs() < 1e-9);
    assert_eq!(notes(&verdict)[0], "one session against one: time is advisory; outputs and counters decide");

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
    let time = row(&verdict, "decode/p128", "itl_ns");
    assert_eq!((time.outcome, crate::gate::support::time(time).head_ns), (Outcome::Regressed, Some(1500.0)));
    let verdict = compare(&file(&decode(1000)), &new, &Policy::default()).expect("a verdict");
    assert_eq!(row(&verdict, "decode/p128", "itl_ns").outcome, Outcome::Advisory);
}

#[test]
fn a_file_against_itself_passes() {
    let baseline = ReceiptOrBaseline::Baseline(Box::new(decode_baseline(&[1000, 1100, 1050])));
    for document in [file(&decode(1000)), baseline] {
        let verdict = compare(&document, &document, &Policy::default()).expect("a verdict");
        assert_eq!(verdict.exit_code, 0, "{verdict:?}");
    }
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

#[test]
fn across_machine_classes_time_is_advisory() {
    let mut other = decode(9000);
    other.machine = machine("elsewhere");
    let verdict = compare(&file(&decode(1000)), &file(&other), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.exit_code, 0);
    let required = Policy { require_baseline: true, ..Policy::default() };
    assert_eq!(compare(&file(&decode(1000)), &file(&other), &required).expect("a verdict").exit_code, 4);
}

#[test]
fn different_models_are_an_error() {
    let mut other = decode(1000);
    other.engine.model = "synthetic:gpt2".into();
    let error =
        compare(&file(&decode(1000)), &file(&other), &Policy::default()).expect_err("models differ").to_string();
    assert!(error.contains("synthetic:tiny") && error.contains("synthetic:gpt2"), "{error}");
}
