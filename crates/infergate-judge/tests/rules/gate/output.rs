//! Two outputs: the same, drifted, or changed.

use infergate_core::engine::EngineInfo;
use infergate_judge::output::{compare, default_tolerance};
use infergate_judge::paired::judge as judge_pair;
use infergate_judge::{Policy, judge};
use infergate_receipts::{
    Accept, Baseline, Fingerprint, OtherLength, Outcome, Output, OutputComparison, PairedReceipt, Receipt, StepLogits,
    Terms, Verdict,
};

use crate::gate::support::measured as paired;
use crate::gate::support::{baseline, case, note, notes, output, row, run};

const TOLERANCE: f64 = 1e-5;

/// An output of `ids`, each with `logits`.
pub fn with_logits(ids: &[u32], logits: &[f32]) -> Output {
    let mut fingerprint = Fingerprint::default();
    (0..ids.len()).for_each(|position| fingerprint.add(position, logits));
    Output { fingerprint: Some(fingerprint), ..output(ids.to_vec()) }
}

fn agreement(base: &Output, head: &Output) -> OutputComparison {
    compare(base, head, TOLERANCE).comparison
}

#[test]
fn the_last_bit_tells_same_from_drifted_and_the_tolerance_drifted_from_changed() {
    let base = with_logits(&[3, 4], &[1.0, 2.0, 8.0]);
    assert_eq!(agreement(&base, &base), OutputComparison::Same);
    for (logit, expected) in [
        (f32::from_bits(8.0_f32.to_bits() + 1), OutputComparison::Drifted),
        (8.0 + 1.3e-4, OutputComparison::Drifted),
        (8.0 + 1.5e-4, OutputComparison::Changed),
        (f32::NAN, OutputComparison::Changed),
        (f32::INFINITY, OutputComparison::Changed),
    ] {
        assert_eq!(agreement(&base, &with_logits(&[3, 4], &[1.0, 2.0, logit])), expected, "{logit}");
    }
    let found = compare(&base, &with_logits(&[3, 4], &[1.0, 2.0, 8.5]), TOLERANCE);
    // One of three moved by a sixteenth, at both positions.
    let expected = (Some(0.5), Some((0.0625_f64.powi(2) / 3.0).sqrt()));
    assert_eq!((found.max_abs_logit_delta, found.relative_drift), expected);
    assert_eq!((found.position, found.positions), (None, Some(2)));
}

/// Of 1000 logits the 8 best are 5, and the others 1 or, after `last`, another number.
fn beside_the_best(last: f32) -> Output {
    let mut logits = vec![1.0; 1000];
    logits[..8].fill(5.0);
    logits[500..].fill(last);
    with_logits(&[1; 16], &logits)
}

#[test]
fn numbers_beside_the_best_are_judged_by_their_signed_sums() {
    let base = beside_the_best(1.0);
    for (last, expected) in [
        (1.0, OutputComparison::Same),
        (1.0 + 1e-6, OutputComparison::Drifted),
        (1.01, OutputComparison::Changed),
        (0.0, OutputComparison::Changed),
        (f32::NAN, OutputComparison::Changed),
        (f32::NEG_INFINITY, OutputComparison::Changed),
    ] {
        let found = compare(&base, &beside_the_best(last), TOLERANCE);
        assert_eq!((found.comparison, found.max_abs_logit_delta), (expected, Some(0.0)), "{last}");
    }
    // Both sides mask the same tokens.
    let masked = beside_the_best(f32::NEG_INFINITY);
    assert_eq!(agreement(&masked, &masked), OutputComparison::Same);
    let padded = |last: f32| {
        let mut logits = vec![1.0; 1000];
        logits[..8].fill(5.0);
        logits[500..900].fill(last);
        logits[900..].fill(f32::NEG_INFINITY);
        with_logits(&[1; 16], &logits)
    };
    assert_eq!(agreement(&padded(1.0), &padded(0.0)), OutputComparison::Changed, "what is not masked is compared");
    // A file that is older than the sums shows them in the log-sum-exp alone.
    let mut old = base.clone();
    old.fingerprint.as_mut().expect("there").signed_sums.clear();
    assert_eq!(agreement(&old, &beside_the_best(0.0)), OutputComparison::Drifted);
    assert_eq!(agreement(&beside_the_best(0.0), &old), OutputComparison::Drifted);
}

#[test]
fn another_number_of_logits_is_another_output() {
    let logits = |count: usize| (0..count).map(|id| 8.0 - id as f32).collect::<Vec<f32>>();
    let mut fewer = logits(12);
    fewer[11] = 0.0;
    let (base, head) = (with_logits(&[0, 1], &[fewer.clone(), vec![0.0]].concat()), with_logits(&[0, 1], &fewer));
    let mut pair = paired("decode/p128", 1_000_000, &[0.0; 8]);
    (pair.cases[0].base_output, pair.cases[0].head_output) = (base, head);
    let verdict = judge_pair(&pair, &Policy { drift_tolerance: Some(1.0), ..Policy::default() });
    let row = row(&verdict, "decode/p128", "output");
    assert_eq!((row.outcome, verdict.exit_code), (Outcome::OutputChanged, 1));
    assert!(note(row).contains("head gives 12 finite logits for each token and base 13"), "{}", note(row));
}

#[test]
fn a_token_that_left_the_best_counts_with_what_it_lost_at_least() {
    let mut logits: Vec<f32> = (0..20).map(|id| 20.0 - id as f32).collect();
    let base = with_logits(&[1], &logits);
    logits[0] = 0.0;
    let found = compare(&base, &with_logits(&[1], &logits), TOLERANCE);
    // It had 20, and the least of head's best has 12.
    assert_eq!((found.comparison, found.max_abs_logit_delta), (OutputComparison::Changed, Some(8.0)));
}

#[test]
fn another_token_is_drift_only_where_both_were_as_good() {
    let base = |margin: Option<f32>| {
        let mut base = with_logits(&[1, 2, 3], &[1.0, 8.0]);
        base.top2_margins = vec![margin; 3];
        // The logits of the second token were not kept, as in a long output.
        base.fingerprint.as_mut().expect("there").steps.remove(1);
        base
    };
    let mut head = with_logits(&[1, 9, 3], &[1.0, 8.00001]);
    head.fingerprint.as_mut().expect("there").steps.truncate(1);
    assert_eq!(agreement(&base(Some(2e-5)), &head), OutputComparison::Drifted);
    assert_eq!(agreement(&base(Some(0.5)), &head), OutputComparison::Changed);
    assert_eq!(agreement(&base(None), &head), OutputComparison::Changed, "a margin nobody knows is no near tie");
    let mut equal = head.clone();
    equal.fingerprint = base(None).fingerprint;
    assert_eq!(
        agreement(&base(Some(1e-5)), &equal),
        OutputComparison::Changed,
        "nothing drifted that could have swapped them"
    );
}

#[test]
fn numbers_are_compared_only_where_both_had_read_the_same() {
    let base = with_logits(&[1, 2, 3], &[1.0, 8.0]);
    let mut head = with_logits(&[1, 9, 3], &[1.0, 8.0]);
    head.fingerprint.as_mut().expect("there").steps[2] = StepLogits::of(2, &[50.0, 60.0]);
    let found = compare(&base, &head, TOLERANCE);
    assert_eq!((found.comparison, found.position, found.positions), (OutputComparison::Changed, Some(1), Some(2)));
    assert_eq!(found.max_abs_logit_delta, Some(0.0));
    // Led along base's words it is compared everywhere.
    head.fingerprint.as_mut().expect("there").fed = Some(vec![1, 2]);
    assert_eq!(compare(&base, &head, TOLERANCE).positions, Some(3));
}

#[test]
fn without_numbers_tokens_decide_as_far_as_both_are_known() {
    let old = output(vec![1, 2]);
    assert_eq!(agreement(&old, &with_logits(&[1, 2], &[1.0])), OutputComparison::Same, "an older file has no numbers");
    assert_eq!(agreement(&with_logits(&[1, 2], &[1.0]), &output(vec![1, 3])), OutputComparison::Changed);
    let more = |more_ids: &[u32]| Output {
        fingerprint: Some(Fingerprint { more_ids: more_ids.to_vec(), ..Fingerprint::default() }),
        ..output(vec![1, 2])
    };
    assert_eq!(agreement(&more(&[3, 4, 5]), &more(&[3, 4])), OutputComparison::Same);
    let found = compare(&more(&[3, 4]), &more(&[3, 9]), TOLERANCE);
    assert_eq!((found.comparison, found.position, found.relative_drift), (OutputComparison::Changed, Some(3), None));
}

/// One case of a run and of its baseline, logits of both; head's last logit is off by `by`.
fn stored(by: f32, change: impl Fn(&mut Receipt, &mut Baseline)) -> Verdict {
    let mut head = run(&[("decode/p128", &[1000; 3])]);
    let mut base = baseline(&[head.clone()]);
    base.exact[0].output = with_logits(&[0, 1], &[1.0, 8.0]);
    head.cases[0].output = with_logits(&[0, 1], &[1.0, 8.0 + by]);
    change(&mut head, &mut base);
    judge(&head, Some(&base), &Policy::default()).expect("comparable")
}

#[test]
fn drift_from_a_baseline_passes_and_a_larger_one_fails_where_the_platform_is_the_same() {
    let outcome = |verdict: &Verdict| row(verdict, "decode/p128", "output").outcome;
    assert_eq!(outcome(&stored(0.0, |_, _| ())), Outcome::Pass);
    let drifted = stored(5e-6, |_, _| ());
    assert_eq!((outcome(&drifted), drifted.exit_code), (Outcome::Drifted, 0));
    assert!(note(row(&drifted, "decode/p128", "output")).contains("(tolerance "));
    let changed = stored(1e-3, |_, _| ());
    assert_eq!((outcome(&changed), changed.exit_code), (Outcome::OutputChanged, 1));
    let elsewhere = stored(1e-3, |head, _| head.machine.instruction_set = Some("avx2".into()));
    assert_eq!(outcome(&elsewhere), Outcome::Advisory, "the same tokens, and another processor rounds otherwise");
    let quantized = stored(1e-3, |head, base| {
        head.engine.dtype = "q4_1".into();
        base.engine.dtype = "q4_1".into();
    });
    assert_eq!(outcome(&quantized), Outcome::Drifted, "the tolerance is the dtype's");
}

/// Greedy tokens can stay the same even if every logit of them is wrong.
#[test]
fn logits_that_head_no_longer_gives_leave_the_output_open() {
    let base = with_logits(&[3, 4], &[1.0, 2.0, 8.0]);
    let bare = output(vec![3, 4]);
    assert_eq!(
        (compare(&base, &bare, TOLERANCE).lost_positions, compare(&bare, &base, TOLERANCE).lost_positions),
        (2, 0)
    );
    // A head whose context ends before base's chooses fewer tokens, and loses none of them.
    let shorter = with_logits(&[3], &[1.0, 2.0, 8.0]);
    assert_eq!(compare(&base, &shorter, TOLERANCE).lost_positions, 0);
    let mut fed = shorter.clone();
    fed.fingerprint.as_mut().expect("there").fed = Some(vec![3]);
    assert_eq!(compare(&base, &fed, TOLERANCE).lost_positions, 1, "it chose one after what it was fed");
    let mut pair = paired("decode/p128", 1_000_000, &[0.0; 8]);
    pair.cases[0].base_output = base.clone();
    pair.cases[0].head_output = bare.clone();
    let verdict = judge_pair(&pair, &Policy::default());
    let row = row(&verdict, "decode/p128", "output");
    assert_eq!((row.outcome, verdict.exit_code), (Outcome::Inconclusive, 3));
    assert!(note(row).contains("base gives logits and head does not"), "{row:?}");
    // Nor does it pass where what is undecided may pass.
    assert!(!row.is_undecided());
    let allowed = judge_pair(&pair, &Policy { allow_output_change: true, ..Policy::default() });
    assert_eq!(allowed.exit_code, 0);
    pair.cases[0].base_output = bare;
    pair.cases[0].head_output = base;
    assert_eq!(judge_pair(&pair, &Policy::default()).exit_code, 0, "head may give more");
}

/// Nothing is timed there: what drifts is rounding, as in a case that is timed.
#[test]
fn outputs_at_other_lengths_are_judged_as_those_of_cases() {
    let at = |id: &str, last: f32| OtherLength {
        id: case(id),
        base_output: with_logits(&[0], &[1.0, 8.0]),
        head_output: with_logits(&[0], &[1.0, last]),
    };
    let mut pair = paired("decode/p128", 1_000_000, &[0.0; 8]);
    pair.other_lengths = vec![at("prefill/p2", 8.0), at("prefill/p37", 8.000001), at("prefill/p101", 8.000005)];
    let verdict = judge_pair(&pair, &Policy::default());
    let rows = |verdict: &Verdict| -> Vec<(String, Outcome)> {
        let of_lengths = verdict.rows.iter().filter(|row| row.subject.to_string().starts_with("prefill/"));
        of_lengths.map(|row| (row.subject.to_string(), row.outcome)).collect()
    };
    assert_eq!(rows(&verdict), [("prefill/p101".to_owned(), Outcome::Drifted)], "the furthest alone");
    assert_eq!(verdict.exit_code, 0);
    let said = "output at other prompt lengths, untimed: same at 2; drifted at 37, 101 tokens";
    assert!(notes(&verdict).contains(&said.to_owned()), "{:?}", notes(&verdict));
    pair.other_lengths[0] = at("prefill/p2", 8.1);
    pair.other_lengths.push(at("prefill/p333", 8.2));
    let verdict = judge_pair(&pair, &Policy::default());
    let changed = |id: &str| (id.to_owned(), Outcome::OutputChanged);
    assert_eq!(rows(&verdict), [changed("prefill/p2"), changed("prefill/p333")], "each by itself");
    assert_eq!(verdict.exit_code, 1);
    // Where every case changed it is one change.
    let mut other = pair.clone();
    other.cases[0].head_output = output(vec![7, 8]);
    assert_eq!(rows(&judge_pair(&other, &Policy::default())), []);
    let accept =
        Accept { case: case("prefill/p2").into(), metric: "output".into(), up_to: None, reason: "another mask".into() };
    pair.terms = Some(Terms { by_head: false, accept: vec![accept], accepted_before: Vec::new() });
    let verdict = judge_pair(&pair, &Policy::default());
    assert_eq!((rows(&verdict)[0].1, rows(&verdict)[1].1), (Outcome::Accepted, Outcome::OutputChanged));
    assert_eq!(verdict.exit_code, 1, "what is accepted of one is not of another");
}

#[test]
fn the_tolerance_follows_what_is_computed_in_however_it_is_spelt() {
    let tolerance = |dtype: &str, computes_in: Option<&str>| {
        let computes_in = computes_in.map(str::to_owned);
        default_tolerance(&EngineInfo { dtype: dtype.into(), computes_in, ..EngineInfo::default() })
    };
    for dtype in ["f32", "F32", "float32", "fp32", "Float", "torch.float32", "single", "F32 (Metal)"] {
        assert_eq!(tolerance(dtype, None), 1e-6, "{dtype}");
    }
    for (one, other) in [("f16", "half"), ("f16", "FP16"), ("f16", "float16"), ("bf16", "bfloat16"), ("q4_1", "int7")] {
        assert_eq!(tolerance(one, None), tolerance(other, None), "{other}");
    }
    assert_eq!(tolerance("f16", Some("f32")), 1e-6);
    assert_eq!(tolerance("q4_1", None), 0.045);
}

#[test]
fn a_case_that_was_not_timed_does_not_pass_as_drifted() {
    let mut receipt = paired("decode/p128", 1000, &[0.0]);
    receipt.cases[0].base_output = with_logits(&[0, 1], &[1.0, 8.0]);
    receipt.cases[0].head_output = with_logits(&[0, 1], &[1.0, 8.00001]);
    let outcome = |receipt: &PairedReceipt| {
        let verdict = judge_pair(receipt, &Policy::default());
        row(&verdict, "decode/p128", "output").outcome
    };
    assert_eq!(outcome(&receipt), Outcome::Drifted);
    receipt.cases[0].timed = false;
    assert_eq!(outcome(&receipt), Outcome::OutputChanged);
}
