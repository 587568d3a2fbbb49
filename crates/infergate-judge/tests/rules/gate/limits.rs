//! A receipt judged again: no limit that it holds counts.

use infergate_core::case::{BenchName, Case};
use infergate_judge::paired::{Limits, Policy, judge, missing_cases};
use infergate_receipts::{LoadCase, MeanTest, Metric, Outcome, PairedReceipt, WindowTimes};
use proptest::prelude::*;

use crate::gate::support::measured;

const LIMITS: Limits = Limits { threshold: 1.02, mean_threshold: None, widest: None, throughput: 1.05, latency: 1.1 };

fn slower(fraction: f64) -> PairedReceipt {
    measured("decode/p8", 10_000_000, &[fraction; 20])
}

#[test]
fn each_number_under_load_has_its_own() {
    let mut receipt = slower(0.0);
    for (metric, limit) in
        [(Metric::SystemToken, 1.05), (Metric::TtftP90, 1.1), (Metric::ItlP90, 1.1), (Metric::LongestGap, 1.5)]
    {
        let times = WindowTimes { ramp_ns: 1, from_ns: 2, to_ns: 3, stop_ns: 4, give_up_ns: 5 };
        receipt.cases[0].load = Some(LoadCase { scenario: "chat".into(), users: 4, metric, times });
        receipt.cases[0].threshold = 99.0;
        let again = LIMITS.set_in(receipt.clone());
        assert_eq!((again.cases[0].threshold, again.cases[0].widest), (limit, limit));
    }
}

#[test]
fn a_receipt_cannot_leave_out_the_mean() {
    let again = LIMITS.set_in(slower(0.04));
    assert_eq!(again.cases[0].mean, Some(MeanTest { threshold: 1.1, expected_std: None }));
}

#[test]
fn what_noise_leaves_undecided_is_held_to_what_the_case_is_or_was_asked_for() {
    let bench = Case::Bench(BenchName::new("format/short").expect("a name"));
    let decode = slower(0.0).cases[0].id;
    let mut receipt = slower(0.0);
    let mut widest = |id, threshold| {
        receipt.cases[0].id = id;
        Limits { threshold, ..LIMITS }.set_in(receipt.clone()).cases[0].widest
    };
    assert_eq!([bench, decode].map(|case| widest(case, 1.02)), [1.10, 1.05]);
    assert_eq!([bench, decode].map(|case| widest(case, 1.2)), [1.2, 1.2], "never below the limit");
    receipt.cases[0].widest = 99.0;
    assert_eq!(LIMITS.set_in(receipt.clone()).cases[0].widest, 1.05);
    assert_eq!(Limits { widest: Some(1.03), ..LIMITS }.set_in(receipt).cases[0].widest, 1.03);
}

#[test]
fn what_the_settings_ask_for_and_the_run_has_not_is_named() {
    let receipt = slower(0.0);
    let said = |cases: &[&str]| {
        let cases: Vec<String> = cases.iter().map(|case| (*case).to_owned()).collect();
        missing_cases(&receipt, &cases).as_ref().map(infergate_report::words::note)
    };
    assert_eq!(said(&[]), None);
    assert_eq!(said(&["decode/*", "decode/p8"]), None);
    let absent = said(&["decode/p8", "prefill/p8", "fib/*"]).expect("a note");
    assert_eq!(absent, "the run lacks cases of the settings: prefill/p8, fib/*");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Whatever limits a receipt claims, the verdict is that of the limits given here; a slowdown beyond them never passes.
    #[test]
    fn no_limit_of_the_receipt_counts(fraction in 0.0f64..0.3, threshold in 1.001f64..100.0, mean in 1.001f64..100.0) {
        let honest = judge(&LIMITS.set_in(slower(fraction)), &Policy::default());
        let mut forged = slower(fraction);
        forged.cases[0].threshold = threshold;
        forged.cases[0].widest = mean;
        forged.cases[0].mean = Some(MeanTest { threshold: mean, expected_std: None });
        let again = judge(&LIMITS.set_in(forged), &Policy::default());
        prop_assert_eq!(&again, &honest);
        if fraction >= 0.025 {
            prop_assert_eq!(again.verdict, Outcome::Regressed);
        }
    }
}
