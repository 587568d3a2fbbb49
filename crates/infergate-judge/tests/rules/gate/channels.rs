//! What every verdict contains, what it refuses, and what it names.

use infergate_judge::{Policy, judge};
use infergate_receipts::{Evidence, Outcome, Receipt, VERDICT_SCHEMA};
use infergate_report::words::headline;

use crate::gate::support::{baseline, decode_baseline, machine, notes, probes, run};

#[test]
fn every_case_appears_on_both_channels() {
    let head = run(&[("prefill/p128", &[9; 3]), ("decode/p128", &[9; 3]), ("generate/p128-o64", &[900; 3])]);
    for base in [None, Some(baseline(&[run(&[("decode/p128", &[9; 3])])])), Some(baseline(std::slice::from_ref(&head)))]
    {
        let verdict = judge(&head, base.as_ref(), &Policy::default()).expect("a verdict");
        for record in &head.cases {
            let own: Vec<_> = verdict.rows.iter().filter(|row| row.subject == record.id.into()).collect();
            let outputs = own.iter().filter(|row| matches!(row.evidence, Evidence::Output(_))).count();
            let times = own.iter().filter(|row| row.time().is_some()).count();
            assert_eq!((outputs, times), (1, 1), "{}", record.id);
        }
        assert_eq!(verdict.schema, VERDICT_SCHEMA);
    }
}

#[test]
fn where_a_baseline_is_required_what_it_does_not_judge_is_not_comparable() {
    let policy = Policy { require_baseline: true, ..Policy::default() };
    let mut head = run(&[("decode/p128", &[1000; 3])]);
    let base = decode_baseline(&[1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000]);
    assert_eq!(judge(&head, Some(&base), &policy).expect("a verdict").exit_code, 0);
    // A case that the baseline has and the run has not was not looked at.
    let more = baseline(&vec![run(&[("decode/p128", &[1000; 3]), ("prefill/p128", &[1000; 3])]); 8]);
    let fewer = judge(&head, Some(&more), &policy).expect("a verdict");
    assert_eq!((fewer.verdict, fewer.exit_code), (Outcome::NotComparable, 4));
    // A machine that drifted meanwhile is not why.
    let mut drifted = probes(10e9, 1e12);
    drifted.after.as_mut().expect("both").fma_flops_per_s = 0.5e12;
    let drifted = Receipt { probes: Some(drifted), ..head.clone() };
    let fewer = judge(&drifted, Some(&more), &policy).expect("a verdict");
    assert!(notes(&fewer).iter().any(|note| note.contains("drifted")), "{:?}", fewer.notes);
    let said = headline::of(&fewer);
    assert!(said.contains("in the baseline and not run, so not judged: prefill/p128"), "{said}");
    head.machine = machine("other");
    let elsewhere = judge(&head, Some(&base), &policy).expect("a verdict");
    assert_eq!((elsewhere.verdict, elsewhere.exit_code), (Outcome::NotComparable, 4));
    // The exact channel still decides, and its failure weighs more.
    head.cases[0].output = crate::gate::support::output(vec![5, 6]);
    assert_eq!(judge(&head, Some(&base), &policy).expect("a verdict").exit_code, 1);
}

#[test]
fn a_baseline_of_something_else_is_an_error_that_names_both() {
    let base = decode_baseline(&[1000]);
    let head = || run(&[("decode/p128", &[1000; 3])]);
    let mut others = [head(), head(), head(), head()];
    others[0].engine.name = "llama.cpp".into();
    others[1].engine.model = "synthetic:gpt2".into();
    others[2].engine.dtype = "q4_1".into();
    others[3].seed = 7;
    let named = [("candle", "llama.cpp"), ("synthetic:tiny", "synthetic:gpt2"), ("f32", "q4_1"), ("'0'", "'7'")];
    for (other, (was, is)) in others.iter().zip(named) {
        let error = judge(other, Some(&base), &Policy::default()).expect_err("another subject").to_string();
        assert!(error.contains(was) && error.contains(is) && error.contains("--baselines"), "{error}");
    }
}

#[test]
fn differences_that_may_explain_a_verdict_are_named() {
    let mut base = decode_baseline(&[1000, 1000, 1000]);
    base.sessions[0].build.rustc = "rustc 1.94.0".into();
    base.sessions[1].threads = 4;
    let mut head = run(&[("decode/p128", &[1000; 3])]);
    head.build.flags = "-C target-cpu=native".into();
    head.engine.version = "0.12.0".into();
    head.engine.settings.insert("gemm".into(), "avx512".into());
    let notes = notes(&judge(&head, Some(&base), &Policy::default()).expect("a verdict")).join("\n");
    for expected in [
        "rustc differs: 'rustc 1.95.0' here, 'rustc 1.94.0' in 1 of 3 sessions",
        "threads differs: '2' here, '4' in 1 of 3 sessions",
        "compiler flags differs: '-C target-cpu=native' here, '-C target-cpu=x86-64-v3' in the baseline",
        "engine version differs: '0.12.0' here, '0.11.1' in the baseline",
        "setting gemm differs: 'avx512' here, 'unset' in the baseline",
    ] {
        assert!(notes.contains(expected), "{expected} is not in\n{notes}");
    }
}

#[test]
fn other_tokens_in_a_run_that_was_cut_short_are_still_other_tokens() {
    let mut head = run(&[("decode/p128", &[1000; 3])]);
    head.partial = true;
    head.cases[0].output = crate::gate::support::output(vec![5, 6]);
    let verdict = judge(&head, Some(&decode_baseline(&[1000; 8])), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::OutputChanged);
}

#[test]
fn changed_flags_do_not_escape_the_baseline() {
    let mut head = run(&[("decode/p128", &[2000; 3])]);
    head.build.flags = "-C opt-level=1".into();
    let verdict = judge(&head, Some(&decode_baseline(&[1000; 8])), &Policy::default()).expect("a verdict");
    assert_eq!(verdict.verdict, Outcome::Regressed);
}
