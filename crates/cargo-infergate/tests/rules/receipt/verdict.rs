//! A verdict file is asked for what it decided row by row: its first field alone is nobody's word.

use cargo_infergate::receipt::{
    Against, Counter, CounterEvidence, Evidence, Interval, Metric, Note, Outcome, OutputComparison, OutputEvidence,
    Reason, TargetEvidence, TimeEvidence, Unit, UpTo, Verdict, VerdictRow, read, write_json,
};
use infergate_core::case::Case;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const OUTCOMES: [Outcome; 19] = [
    Outcome::Layout,
    Outcome::Pass,
    Outcome::Plateau,
    Outcome::SameCode,
    Outcome::WithinLimit,
    Outcome::Improved,
    Outcome::Drifted,
    Outcome::Advisory,
    Outcome::Regressed,
    Outcome::OutputChanged,
    Outcome::CounterRegressed,
    Outcome::Leak,
    Outcome::TargetMissed,
    Outcome::Unstable,
    Outcome::Inconclusive,
    Outcome::Invalid,
    Outcome::Partial,
    Outcome::NotComparable,
    Outcome::Failed,
];

fn case() -> Case {
    "decode/p128".parse().expect("a case")
}

/// A row without numbers that could contradict it.
fn row(outcome: Outcome) -> VerdictRow {
    let output = OutputEvidence::new(OutputComparison::Unknown);
    let time = TimeEvidence::new(Metric::Itl, Against::Base);
    let is_of_time = outcome == Outcome::SameCode;
    let evidence = if is_of_time { Evidence::Time(time) } else { Evidence::Output(output) };
    VerdictRow::new(case(), outcome, evidence)
}

fn of(outcomes: &[Outcome]) -> Verdict {
    Verdict::of(outcomes.iter().copied().map(row).collect(), Vec::new())
}

/// A row whose time was measured and is still open.
fn open() -> VerdictRow {
    let time = TimeEvidence { ratio: Some(1.0), ..TimeEvidence::new(Metric::Itl, Against::Base) };
    VerdictRow::new(case(), Outcome::Inconclusive, Evidence::Time(time))
}

/// What reading `verdict` from a file says against it, without the file's name.
#[track_caller]
fn refused(verdict: &Verdict) -> String {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("verdict.json");
    write_json(&path, verdict).expect("a file");
    let error = format!("{:#}", read::<Verdict>(&path).expect_err("it contradicts itself"));
    assert!(!error.contains('\n') && !error.ends_with('.'), "{error}");
    error.replace(&path.display().to_string(), "FILE")
}

#[test]
fn numbers_that_no_gate_gives_are_refused_in_one_line() {
    let of_time = |time: TimeEvidence| VerdictRow::new(case(), Outcome::Advisory, Evidence::Time(time));
    let time = || TimeEvidence::new(Metric::Itl, Against::Base);
    let interval = Some(Interval { low: -1.0, high: 1.0, level: 0.95 });
    let output = OutputEvidence { position: Some(usize::MAX), ..OutputEvidence::new(OutputComparison::Changed) };
    for (row, said) in [
        (of_time(TimeEvidence { ratio: Some(-1.0), ..time() }), "decode/p128: its ratio is none of times"),
        (of_time(TimeEvidence { ratio: Some(1.0), interval, ..time() }), "decode/p128: its ratio is none of times"),
        (VerdictRow::new(case(), Outcome::OutputChanged, Evidence::Output(output)), "decode/p128: place of a token"),
    ] {
        let error = refused(&Verdict::of(vec![row], Vec::new()));
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_pass_above_rows_that_regressed_is_refused_in_one_line() {
    let verdict = of(&[Outcome::Pass, Outcome::Regressed]);
    let forged = Verdict { verdict: Outcome::Pass, exit_code: 0, ..verdict };
    assert!(
        refused(&forged).contains(
            "it says pass and its row decode/p128 says regressed; the file was edited, judge the receipt again"
        ),
        "{}",
        refused(&forged)
    );
    let bare = Verdict { rows: Vec::new(), ..forged };
    assert!(refused(&bare).contains("it says pass and has no rows"), "{}", refused(&bare));
}

#[test]
fn a_pass_of_a_run_that_broke_is_refused() {
    for note in [Note::Broken { what: "why".into() }, Note::CutShort { base: false }] {
        let forged = Verdict { notes: vec![note], ..of(&[Outcome::WithinLimit]) };
        assert!(refused(&forged).contains("it says pass of a run that broke or was cut short"), "{}", refused(&forged));
    }
    // Base alone was cut short: what it has is compared.
    let sound = Verdict { notes: vec![Note::CutShort { base: true }], ..of(&[Outcome::WithinLimit]) };
    sound.validate().expect("it can be reached");
}

/// Rows whose outcome passes, and whose numbers do not.
fn contradicting() -> Vec<VerdictRow> {
    let time = |against, ratio, low, outcome| {
        let interval = Some(Interval { low, high: 1.6, level: 0.95 });
        let (ratio, threshold) = (Some(ratio), Some(1.1));
        let time = TimeEvidence { ratio, interval, threshold, ..TimeEvidence::new(Metric::Itl, against) };
        VerdictRow::new(case(), outcome, Evidence::Time(time))
    };
    let counter = CounterEvidence {
        name: "allocations_per_token".into(),
        unit: Unit::Number,
        base: Some(Counter { min: 10, max: 12 }),
        head: Some(Counter { min: 13, max: 13 }),
        head_twice: None,
        tolerance: 0.0,
    };
    let target: cargo_infergate::receipt::Target = "decode/* itl_ms < 50".parse().expect("a target");
    let missed =
        TargetEvidence { metric: target.metric(), limit: target.limit(), target: target.clone(), value: Some(60.0) };
    let unknown = TargetEvidence { value: None, ..missed.clone() };
    let changed = OutputEvidence::new(OutputComparison::Changed);
    let parted = OutputEvidence { position: Some(3), ..OutputEvidence::new(OutputComparison::Same) };
    let row = |outcome, evidence| VerdictRow::new(case(), outcome, evidence);
    vec![
        time(Against::Base, 1.5, 1.4, Outcome::WithinLimit),
        time(Against::Base, 1.5, 1.4, Outcome::Improved),
        time(Against::Baseline, 1.5, 0.9, Outcome::WithinLimit),
        time(Against::Base, 1.5, 1.4, Outcome::SameCode),
        time(Against::Base, 1.5, 0.9, Outcome::Improved),
        row(Outcome::Pass, Evidence::Counter(counter)),
        row(Outcome::Pass, Evidence::Target(missed)),
        row(Outcome::Pass, Evidence::Target(unknown)),
        row(Outcome::Pass, Evidence::Output(changed.clone())),
        row(Outcome::Pass, Evidence::Output(parted)),
        row(Outcome::Drifted, Evidence::Output(changed)),
    ]
}

#[test]
fn an_accepted_row_says_who_accepts_how_much() {
    let time = TimeEvidence { ratio: Some(1.05), ..TimeEvidence::new(Metric::Itl, Against::Base) };
    let plain = VerdictRow::new(case(), Outcome::Accepted, Evidence::Time(time));
    let accepted = |percent| {
        let reason = Reason::Accepted { up_to: Some(UpTo::Percent(percent)), reason: "meant".into() };
        Verdict::of(vec![plain.clone().because(reason)], Vec::new())
    };
    accepted(5.1).validate().expect("it can be reached");
    for forged in [accepted(4.9), Verdict::of(vec![plain.clone()], Vec::new())] {
        assert!(refused(&forged).contains("says accepted and its numbers say otherwise"), "{}", refused(&forged));
    }
}

#[test]
fn a_row_that_passes_against_its_own_numbers_is_refused() {
    for row in contradicting() {
        let said = refused(&Verdict::of(vec![row.clone()], Vec::new()));
        assert!(said.contains("and its numbers say otherwise"), "{row:?}: {said}");
        // Shown and not judged is no pass, and a failure may be worse than its numbers.
        for outcome in [Outcome::Advisory, Outcome::Invalid] {
            let row = VerdictRow { outcome, ..row.clone() };
            Verdict::of(vec![row], Vec::new()).validate().expect("it can be reached");
        }
    }
}

proptest! {
    /// Whatever rows there are: what the gate makes of them is read, and nothing better.
    #[test]
    fn a_decision_is_read_as_its_rows_give_it_or_not_at_all(
        outcomes in vec(select(&OUTCOMES[..]), 1..6), other in select(&OUTCOMES[..]), exit_code in 0i32..5,
    ) {
        let verdict = of(&outcomes);
        prop_assert!(verdict.validate().is_ok(), "{:?}", verdict);
        let whole = [Outcome::Invalid, Outcome::Partial, Outcome::NotComparable, Outcome::Failed];
        for at_best in whole {
            prop_assert!(verdict.clone().at_best(at_best).validate().is_ok(), "{:?} {:?}", verdict, at_best);
        }
        let forged = Verdict { verdict: other, exit_code: other.exit_code(), ..verdict.clone() };
        if forged.validate().is_ok() {
            prop_assert!(other.severity() >= verdict.verdict.severity(), "{:?} above {:?}", other, outcomes);
            prop_assert!(other == Outcome::Pass || outcomes.contains(&other) || whole.contains(&other));
        }
        let forged = Verdict { exit_code, ..verdict.clone() };
        prop_assert_eq!(forged.validate().is_ok(), exit_code == verdict.exit_code);
    }

    /// `undecided = "warn"` lets pass what noise left open, and nothing beside it.
    #[test]
    fn what_is_undecided_passes_alone(outcomes in vec(select(&OUTCOMES[..]), 0..5)) {
        let rows: Vec<VerdictRow> = outcomes.iter().copied().map(row).chain([open()]).collect();
        let verdict = Verdict::of(rows, Vec::new()).passing_undecided();
        prop_assert!(verdict.validate().is_ok(), "{:?}", verdict);
        let forged = Verdict { verdict: Outcome::Inconclusive, exit_code: 0, ..verdict };
        let others_pass = outcomes.iter().all(|outcome| outcome.exit_code() == 0);
        prop_assert_eq!(forged.validate().is_ok(), others_pass);
    }
}
