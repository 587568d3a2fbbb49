//! What happened, in one sentence; and the verdict file, which says to a program what the comment says to a person.

use infergate_receipts::{
    Against, Counter, CounterEvidence, Evidence, Interval, MemoryEvidence, MemoryMeasure, Metric, Outcome,
    OutputComparison, OutputEvidence, Reason, Subject, Target, TargetEvidence, Terms, TimeEvidence, Unit, Verdict,
    VerdictRow,
};
use infergate_report::inputs::Inputs;
use infergate_report::verdict_file::verdict_file;
use infergate_report::words::headline::{of, outcome};
use proptest::prelude::*;
use proptest::sample::select;

use crate::report_formats::commands::bench;
use crate::report_formats::support::file;

fn row(subject: &str, outcome: Outcome, evidence: Evidence) -> VerdictRow {
    VerdictRow::new(subject.parse::<Subject>().expect("a subject"), outcome, evidence)
}

/// A time of 1 ms that moved by `ratio`.
fn time(subject: &str, outcome: Outcome, metric: Metric, ratio: f64) -> VerdictRow {
    let time = TimeEvidence {
        base_ns: Some(1e6),
        head_ns: Some(1e6 * ratio),
        ratio: Some(ratio),
        interval: Some(Interval { low: ratio - 0.01, high: ratio + 0.01, level: 0.95 }),
        threshold: Some(1.02),
        smallest_slowdown: Some(1.021),
        ..TimeEvidence::new(metric, Against::Base)
    };
    row(subject, outcome, Evidence::Time(time))
}

fn decode(outcome: Outcome, ratio: f64) -> VerdictRow {
    time("decode/p128", outcome, Metric::Itl, ratio)
}

pub fn output(subject: &str, outcome: Outcome, comparison: OutputComparison, position: Option<usize>) -> VerdictRow {
    let output = OutputEvidence { comparison, position, ..OutputEvidence::default() };
    row(subject, outcome, Evidence::Output(output))
}

pub fn counter(subject: &str, name: &str, base: u64, head: u64) -> VerdictRow {
    let exactly = |count| Some(Counter { min: count, max: count });
    let (base, head) = (exactly(base), exactly(head));
    let counter =
        CounterEvidence { name: name.into(), unit: Unit::of(name), base, head, head_twice: None, tolerance: 0.0 };
    let outcome = if counter.rises() { Outcome::CounterRegressed } else { Outcome::Pass };
    row(subject, outcome, Evidence::Counter(counter))
}

fn memory(measure: MemoryMeasure, outcome: Outcome, slope_bytes: f64) -> VerdictRow {
    let memory = MemoryEvidence {
        measure,
        runs: Some(100),
        slope_bytes: Some(slope_bytes),
        count_per_run: None,
        floor_bytes: None,
        p_rising: None,
        smallest_leak_bytes: Some(1.0),
        kept_bytes: None,
    };
    let text = format!("memory grows by {slope_bytes} B a run");
    row("generate/p128-o16", outcome, Evidence::Memory(memory)).because(Reason::Observed { text })
}

fn missed() -> VerdictRow {
    let target = "prefill/* ttft_ms < 1".parse::<Target>().expect("a target");
    let missed =
        TargetEvidence { metric: target.metric, limit: target.limit, target: target.clone(), value: Some(1.21) };
    row("prefill/p8", Outcome::TargetMissed, Evidence::Target(missed))
}

/// The sentence of these rows, and that it holds each of `parts`.
#[track_caller]
fn assert_says(rows: Vec<VerdictRow>, parts: &[&str]) {
    let said = of(&Verdict::of(rows, vec![]));
    let mut rest = said.as_str();
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} is not at its place in {said}")).1;
    }
}

/// Whatever the order of the rows: the first that there are of time, output, memory, counters and targets, with its size; the others in
/// numbers.
#[test]
fn what_fails_comes_in_one_order_and_the_first_with_its_size() {
    use Outcome::{Leak, OutputChanged, Regressed};
    let mut rows = vec![
        missed(),
        counter("decode/p128", "allocations_per_token", 1, 2),
        memory(MemoryMeasure::Resident, Leak, 20_000.0),
        memory(MemoryMeasure::Heap, Leak, 542.4),
        output("generate/p128-o64", OutputChanged, OutputComparison::Changed, Some(33)),
        decode(Regressed, 1.057),
        output("prefill/p128", OutputChanged, OutputComparison::Changed, None),
    ];
    let others = "also counter regressed in 1 case, leak in 1 case, output changed in 2 cases, target missed in 1 case";
    assert_says(rows.clone(), &["decode/p128 +5.7 % (1.000 → 1.057 ms); ", others]);
    for first in ["token 34", "542.4 B a run", "allocations per token +1 (1 → 2)", "1.21 ms"] {
        let verdict = Verdict::of(rows.clone(), vec![]).verdict;
        rows.retain(|row| row.outcome != verdict);
        assert_says(rows.clone(), &[first]);
    }
    let others = [decode(Regressed, 1.1), time("prefill/p8", Outcome::Pass, Metric::Ttft, 1.0)];
    assert_eq!(outcome(&Verdict::of(others.to_vec(), vec![])), "1 of 2 regressed");
    let failed = counter("load:chat/2 users", "failed_requests", 0, 1);
    let more = Reason::MoreFail { failed: 1, issued: 40, most_before: 0.013, blocks: None };
    assert_says(vec![failed.because(more)], &["failed requests +1", "40 requests", "1.3 %"]);
}

#[test]
fn a_pass_says_what_would_have_shown() {
    use Outcome::{Drifted, Improved, Pass, WithinLimit};
    let same = || output("decode/p128", Pass, OutputComparison::Same, None);
    let followed = memory(MemoryMeasure::Heap, Pass, 0.0);
    let rows = vec![same(), decode(WithinLimit, 0.995), followed];
    assert_says(rows, &["1 case with the same output", "none slower", "2.1 %", "no leak in 100 runs", "1 B"]);
    assert_says(vec![same(), decode(Improved, 0.88)], &["decode/p128 -12.0 %", "none slower"]);
    let drifted = output("decode/p128", Drifted, OutputComparison::Drifted, None);
    assert_says(vec![drifted], &["1 case (output: 1 drifted)"]);
}

/// A reader who works out the change from the two times gets the one that is shown.
#[test]
fn the_change_follows_from_the_times_beside_it() {
    for (base_ns, ratio, shown) in [
        (20e6, 1.05, "+5.0 % (20.0 → 21.0 ms)"),
        (13.137e6, 1.0642, "+6.4 % (13.14 → 13.98 ms)"),
        (1.2405e9, 0.9961, "-0.4 % (1.2405 → 1.2357 s)"),
        (1e6, 0.88, "-12.0 % (1.00 ms → 880 µs)"),
        (0.45, 1.06, "+6.0 % (0.450 → 0.477 ns)"),
    ] {
        let mut row = decode(Outcome::Regressed, ratio);
        let Evidence::Time(time) = &mut row.evidence else { unreachable!("it is a time") };
        (time.base_ns, time.head_ns) = (Some(base_ns), Some(base_ns * ratio));
        assert_says(vec![row.clone()], &[shown]);
        let inputs = Inputs { verdict: Some(Verdict::of(vec![row], vec![])), ..Inputs::new("cargo infergate") };
        let comment = file(&inputs, "comment.md");
        let cells: Vec<&str> =
            comment.lines().find(|line| line.starts_with("| decode")).expect("a row").split(" | ").collect();
        let of_cells = [cells[2], cells[3]].map(|time| time.split(' ').next().unwrap_or_default());
        assert!(of_cells.iter().all(|number| shown.contains(number)), "{shown}: {cells:?}");
    }
}

#[test]
fn what_is_open_and_passes_is_no_failure_and_nothing_is_no_pass() {
    let noisy = decode(Outcome::Unstable, 1.012).because(Reason::TooNoisy { blocks: 24 });
    let warned = Verdict::of(vec![noisy], vec![]).passing_undecided();
    assert_eq!(verdict_file(&warned, &Inputs::new("cargo infergate")).failures, []);
    assert_says(vec![], &["nothing was compared"]);
}

#[test]
fn a_program_finds_in_the_file_what_a_person_finds_in_the_comment() {
    let mut inputs: Inputs = bench("fib/20");
    let terms = Terms { by_head: false, accept: Vec::new(), accepted_before: Vec::new() };
    inputs.paired.as_mut().expect("a pair").terms = Some(terms);
    let with_all = file(&inputs, "comment.md");
    assert!(with_all.contains("\nA leak cannot be accepted: ") && !with_all.contains("[[accept]]"), "{with_all}");
    let places = verdict_file(inputs.verdict.as_ref().expect("judged"), &inputs).where_to_look;
    assert!(!places.is_empty() && places.iter().all(|place| with_all.contains(&format!("- {place}\n"))), "{with_all}");
    let rows = &mut inputs.verdict.as_mut().expect("judged").rows;
    rows.retain(|row| !matches!(row.outcome, Outcome::Leak | Outcome::TargetMissed));
    let verdict = inputs.verdict.clone().expect("judged");
    let told = verdict_file(&verdict, &inputs);
    let comment = file(&inputs, "comment.md");
    let commands = [told.repeat.as_deref(), told.find_commit.as_deref()];
    let said = commands.into_iter().chain([told.accept.as_deref(), told.how_sure.as_deref(), Some(&*told.headline)]);
    for said in said {
        let said = said.expect("it can be said");
        assert!(comment.contains(said), "{said} is not in {comment}");
    }
    // The end of the interval that is shown.
    let is_offered = told.accept.as_deref().is_some_and(|tables| tables.contains("up_to = \"0.7%\""));
    assert!(is_offered && comment.contains(" to +0.7 %)"), "{comment}");
    let failed = verdict.rows.iter().filter(|row| row.outcome.exit_code() != 0).count();
    assert!(failed > 0 && told.failures.len() == failed, "{:?}", told.failures);
    for failure in &told.failures {
        let row = &verdict.rows[failure.row];
        assert_eq!((&failure.subject, failure.outcome), (&row.subject, row.outcome));
    }
    let text = serde_json::to_string(&told).expect("JSON");
    let read: Verdict = serde_json::from_str(&text).expect("a verdict again, without its words");
    assert_eq!((read.verdict, read.rows.len()), (verdict.verdict, verdict.rows.len()));
}

/// Longer answers are no failures.
#[test]
fn what_is_counted_under_load_cannot_be_accepted_whatever_it_is() {
    let longer = counter("load:chat/2 users", "answer_bytes", 900, 1800);
    let inputs = Inputs { verdict: Some(Verdict::of(vec![longer], vec![])), ..Inputs::new("cargo infergate") };
    let comment = file(&inputs, "comment.md");
    assert!(comment.contains("\nA count under load cannot be accepted: "), "{comment}");
}

fn any_row() -> impl Strategy<Value = VerdictRow> {
    use Outcome::{
        Accepted, Advisory, CounterRegressed, Improved, Inconclusive, Invalid, Leak, NotComparable, Pass, Regressed,
        WithinLimit,
    };
    let outcomes = vec![
        Accepted,
        Advisory,
        Improved,
        Pass,
        WithinLimit,
        CounterRegressed,
        Inconclusive,
        Invalid,
        Leak,
        NotComparable,
        Regressed,
    ];
    let subjects = ["decode/p8", "decode/p16", "generate/p8-o8", "bench:a b", "load:chat/2 users", "model"];
    let evidence = (0..5_u8, 0.0..1e6_f64, any::<u32>());
    (select(outcomes), select(subjects.to_vec()), evidence).prop_map(|(outcome, subject, (kind, number, count))| {
        let at = Some(count as usize).filter(|at| at.is_multiple_of(2));
        let evidence = match kind {
            0 => time(subject, outcome, Metric::Itl, number).evidence,
            1 => output(subject, outcome, OutputComparison::Changed, at).evidence,
            2 => memory(MemoryMeasure::Heap, outcome, number).evidence,
            3 => counter(subject, "peak_live_bytes", 7, u64::from(count)).evidence,
            _ => Evidence::Time(TimeEvidence::new(Metric::TtftP90, Against::Base)),
        };
        row(subject, outcome, evidence)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the rows: one line, never empty, no name of a field, and the same words for the same verdict.
    #[test]
    fn any_verdict_has_a_sentence(rows in proptest::collection::vec(any_row(), 0..12)) {
        let verdict = Verdict::of(rows, vec![]);
        let said = of(&verdict);
        prop_assert!(!said.is_empty() && !said.contains('\n'), "{said}");
        prop_assert!(!said.contains("_ns") && !said.contains("  "), "{said}");
    }
}
