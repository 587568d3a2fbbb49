//! Targets: absolute limits, read from a line of text.

use infergate_judge::{Policy, judge, target_value};
use infergate_receipts::{
    Counter, Evidence, Metric, Outcome, ProcessSamples, Receipt, Target, TargetEvidence, TargetMetric, Verdict,
    VerdictRow,
};
use proptest::prelude::*;

use crate::gate::support::{assert_near, note, row, run};

#[track_caller]
fn target_of(row: &VerdictRow) -> &TargetEvidence {
    if let Evidence::Target(target) = &row.evidence { target } else { panic!("{row:?}") }
}

fn error_of(text: &str) -> String {
    format!("{:#}", text.parse::<Target>().expect_err(text))
}

fn judged(head: &Receipt, target: &str) -> Verdict {
    let policy = Policy { targets: vec![target.parse().expect(target)], ..Policy::default() };
    judge(head, None, &policy).expect("a verdict")
}

/// Prompt in 100 ms, then a token every 10 ms.
fn generation() -> Receipt {
    let mut head = run(&[("generate/p8-o5", &[1])]);
    let sample = |slower: u64| (0..5).map(|k| (100 + 10 * k) * 1_000_000 * slower).collect::<Vec<u64>>();
    let process = |slower| ProcessSamples {
        samples_ns: vec![sample(slower), sample(slower), sample(9)],
        ..ProcessSamples::default()
    };
    head.cases[0].processes = vec![process(1), process(1), process(2)];
    head
}

#[test]
fn spaces_in_a_target_do_not_matter() {
    let loose: Target = "  decode/*   itl_ms<50  ".parse().expect("without spaces");
    assert_eq!(loose.to_string(), "decode/* itl_ms < 50");
    assert_eq!((loose.cases.as_str(), loose.metric, loose.limit), ("decode/*", TargetMetric::Of(Metric::Itl), 50.0));
}

#[test]
fn bad_text_says_what_is_wrong_and_how_to_write_it() {
    for (text, reason) in [
        ("decode/* tokens_per_sec > 20", "'tokens_per_sec' is not a metric; there are ttft_ms, "),
        ("decode/p128 ITL_MS < 5", "'ITL_MS' is not a metric"),
        ("prefill/p128 ttft_ms 2500", "it has none of < <= > >="),
        ("ttft_ms < 2500", "there must be cases and a metric"),
        ("prefill/p128 ttft_ms < 2500 ms", "'2500 ms' is not a number above zero; the unit is in the metric's name"),
        ("prefill/p128 ttft_ms < inf", "'inf' is not a number"),
        ("prefill/p128 ttft_ms < 0", "'0' is not a number"),
        ("prefill/p128 ttft_ms < ", "'' is not a number"),
        ("", "target '' cannot be read"),
    ] {
        let error = error_of(text);
        assert!(error.contains(reason), "{text}: {error}");
        assert!(error.contains("write it like 'prefill/p128 ttft_ms < 2500'"), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn each_metric_is_derived_from_the_raw_samples_per_process() {
    let head = generation();
    for (metric, expected) in [
        (TargetMetric::Of(Metric::Ttft), 100.0),
        (TargetMetric::Of(Metric::Itl), 10.0),
        (TargetMetric::Of(Metric::Tpot), 10.0),
        (TargetMetric::Of(Metric::E2e), 140.0),
        (TargetMetric::Of(Metric::DecodeSpeed), 100.0),
        (TargetMetric::Of(Metric::OutputThroughput), 5.0 / 0.140),
    ] {
        assert_near(target_value(metric, &head.cases[0]), expected);
    }
}

#[test]
fn a_step_and_a_prefill_have_the_metrics_they_have() {
    let head = run(&[("decode/p8", &[20_000_000]), ("prefill/p8", &[100_000_000])]);
    let values = |at: usize| TargetMetric::ALL.map(|metric| target_value(metric, &head.cases[at]));
    // ttft, itl, tpot, e2e, tokens/s, output tokens/s, a variation that takes two samples, two that were not counted, and one of load
    assert_eq!(values(0), [None, Some(20.0), Some(20.0), None, Some(50.0), None, None, None, None, None]);
    assert_eq!(values(1), [Some(100.0), None, None, Some(100.0), None, Some(10.0), None, None, None, None]);
}

/// Of 90, 100 and 110 ms the standard deviation is 10 ms.
#[test]
fn a_variation_is_over_all_samples_of_the_time_that_a_case_is_about() {
    for id in ["prefill/p8", "decode/p8", "generate/p8-o5"] {
        let head = run(&[(id, &[90_000_000, 100_000_000, 110_000_000])]);
        assert_near(target_value(TargetMetric::CvPercent, &head.cases[0]), 10.0);
        for (limit, expected) in [("< 20", Outcome::Pass), ("< 9", Outcome::TargetMissed)] {
            let target = format!("* cv_percent {limit}");
            let verdict = judged(&head, &target);
            assert_eq!(row(&verdict, id, "cv_percent").outcome, expected, "{target}");
        }
    }
}

#[test]
fn a_counter_can_be_limited_and_its_largest_count_decides() {
    let mut head = generation();
    head.cases[0].counters.insert("allocations_per_token".into(), Counter { min: 1400, max: 1501 });
    for (target, expected) in [
        ("generate/* allocations_per_token < 1500", Outcome::TargetMissed),
        ("generate/* allocations_per_token <= 1501", Outcome::Pass),
        ("generate/* peak_live_bytes < 1e9", Outcome::TargetMissed),
    ] {
        let verdict = judged(&head, target);
        assert_eq!(verdict.verdict == Outcome::TargetMissed, expected == Outcome::TargetMissed, "{target}");
    }
}

#[test]
fn a_target_is_met_or_missed() {
    let head = generation();
    for (target, expected) in [
        ("generate/* ttft_ms < 100", Outcome::TargetMissed),
        ("generate/* ttft_ms <= 100", Outcome::Pass),
        ("* tokens_per_s > 20", Outcome::Pass),
        ("* tokens_per_s > 200", Outcome::TargetMissed),
    ] {
        let verdict = judged(&head, target);
        let row = row(&verdict, "generate/p8-o5", target.split(' ').nth(1).expect("a metric"));
        assert_eq!(row.outcome, expected, "{target}");
        assert_eq!(verdict.exit_code, i32::from(expected == Outcome::TargetMissed), "{target}");
        assert_eq!(note(row).contains(target), expected == Outcome::TargetMissed, "what passes needs no word: {row:?}");
        assert_eq!(target_of(row).target.to_string(), target);
    }
}

#[test]
fn a_missing_value_never_passes() {
    let verdict = judged(&run(&[("prefill/p8", &[100])]), "* tpot_ms < 1000");
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::TargetMissed, 1));
    let row = row(&verdict, "prefill/p8", "tpot_ms");
    assert_eq!(target_of(row).value, None);
    assert!(note(row).contains("this case has no such metric; name other cases"), "{row:?}");
}

#[test]
fn a_target_of_an_invalid_or_cut_run_does_not_pass() {
    let mut head = run(&[("prefill/p8", &[100])]);
    head.partial = true;
    assert_eq!(row(&judged(&head, "* ttft_ms < 1000"), "prefill/p8", "ttft_ms").outcome, Outcome::Partial);
    assert_eq!(judged(&head, "decode/* itl_ms < 50").verdict, Outcome::Partial, "it may not have come to that case");
    head.partial = false;
    head.invalid = vec!["prefill/p8: output token 1 is not the same in two processes".into()];
    assert_eq!(row(&judged(&head, "* ttft_ms < 1000"), "prefill/p8", "ttft_ms").outcome, Outcome::Invalid);
}

proptest! {
    #[test]
    fn any_text_is_a_target_or_an_error(text in "\\PC{0,40}") {
        if let Ok(target) = text.parse::<Target>() {
            let again: Target = target.to_string().parse().unwrap();
            prop_assert_eq!(again, target);
        }
    }

    #[test]
    fn every_limit_survives_its_text(limit in 1e-6f64..1e12, metric in 0usize..7, sign in 0usize..4) {
        let text = format!("decode/* {} {} {limit}", TargetMetric::ALL[metric].name(), ["<", "<=", ">", ">="][sign]);
        let target: Target = text.parse().unwrap();
        prop_assert_eq!(target.limit, limit);
        prop_assert_eq!(target.is_met_by(limit), sign % 2 == 1);
        prop_assert_eq!(target.to_string(), text);
    }
}
