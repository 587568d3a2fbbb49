//! What happened, in one sentence; and the verdict file, which says to a program what the comment says to a person.

use cargo_infergate::receipt::{
    Against, Counter, CounterEvidence, Evidence, Interval, MemoryEvidence, Metric, Note, Outcome, OutputComparison,
    OutputEvidence, Reason, Shown, Statistic, Subject, Target, TargetEvidence, Terms, TimeEvidence, Unit, Verdict,
    VerdictRow, Witness,
};
use cargo_infergate::report::inputs::Inputs;
use cargo_infergate::report::verdict_file::verdict_file;
use cargo_infergate::report::words::headline::{of, outcomes};
use infergate_core::printable::printable;
use proptest::prelude::*;
use proptest::sample::select;

use crate::report_formats::commands::bench;
use crate::report_formats::support::file;

fn row(subject: &str, outcome: Outcome, evidence: Evidence) -> VerdictRow {
    VerdictRow::new(subject.parse::<Subject>().expect("a subject"), outcome, evidence)
}

/// A time of 1 ms that moved by `ratio`.
fn moved(metric: Metric, ratio: f64) -> TimeEvidence {
    TimeEvidence {
        base_ns: Some(1e6),
        head_ns: Some(1e6 * ratio),
        ratio: Some(ratio),
        interval: Some(Interval { low: ratio - 0.01, high: ratio + 0.01, level: 0.95 }),
        threshold: Some(1.02),
        smallest_slowdown: Some(1.021),
        ..TimeEvidence::new(metric, Against::Base)
    }
}

fn time(subject: &str, outcome: Outcome, metric: Metric, ratio: f64) -> VerdictRow {
    row(subject, outcome, Evidence::Time(moved(metric, ratio)))
}

fn decode(prompt_tokens: usize, outcome: Outcome, ratio: f64) -> VerdictRow {
    time(&format!("decode/p{prompt_tokens}"), outcome, Metric::Itl, ratio)
}

fn output(subject: &str, outcome: Outcome, comparison: OutputComparison, position: Option<usize>) -> VerdictRow {
    let delta = (position.is_none() && comparison == OutputComparison::Changed).then_some(0.027);
    let output = OutputEvidence { position, max_abs_logit_delta: delta, ..OutputEvidence::new(comparison) };
    row(subject, outcome, Evidence::Output(output))
}

fn same(subject: &str) -> VerdictRow {
    output(subject, Outcome::Pass, OutputComparison::Same, None)
}

fn counter(subject: &str, name: &str, base: u64, head: u64) -> VerdictRow {
    let exactly = |count| Some(Counter { min: count, max: count });
    let (base, head) = (exactly(base), exactly(head));
    let counter =
        CounterEvidence { name: name.into(), unit: Unit::of(name), base, head, head_twice: None, tolerance: 0.0 };
    let outcome = if counter.rises() { Outcome::CounterRegressed } else { Outcome::Pass };
    row(subject, outcome, Evidence::Counter(counter))
}

fn memory(witness: Witness, outcome: Outcome, slope_bytes: f64, smallest_leak_bytes: f64) -> VerdictRow {
    let memory = MemoryEvidence {
        witness,
        runs: Some(100),
        slope_bytes: Some(slope_bytes),
        count_per_run: None,
        floor_bytes: None,
        p_rising: None,
        smallest_leak_bytes: Some(smallest_leak_bytes),
        kept_bytes: None,
        certain_leak_interval: None,
        random_leaks: Vec::new(),
    };
    row("generate/p128-o16", outcome, Evidence::Memory(memory))
}

#[track_caller]
fn assert_says(rows: Vec<VerdictRow>, notes: Vec<Note>, expected: &str) {
    assert_eq!(of(&Verdict::of(rows, notes)), expected);
}

#[test]
fn a_slowdown_comes_first_with_its_size_and_the_others_are_counted() {
    use Outcome::{Regressed, WithinLimit};
    let details = "(1.00 to 1.06 ms; 95 %: +4.7 to +6.7 %)";
    let slower = |ratio| decode(128, Regressed, ratio);
    assert_says(vec![slower(1.057)], vec![], &format!("decode 5.7 % slower {details}"));
    assert_says(
        vec![slower(1.057), decode(512, WithinLimit, 1.0), same("prefill/p128"), decode(8, Outcome::Unstable, 1.1)],
        vec![],
        &format!("decode/p128 5.7 % slower {details}. 2 other cases pass, 1 other case is not decided"),
    );
    let generate = time("generate/p128-o64", Regressed, Metric::E2e, 1.03);
    let bench = time("bench:fib/20", Regressed, Metric::Time, 1.02);
    assert_says(
        vec![bench, generate, slower(1.057)],
        vec![],
        &format!("decode 5.7 % slower {details}, generate 3.0 % slower and 1 more"),
    );
    let level = time("load:chat/2 users", Regressed, Metric::Ttft, 1.5);
    assert_says(vec![level], vec![], "TTFT of chat/2 users 50 % longer (1.00 to 1.50 ms; 95 %: +49 to +51 %)");
    // What a token of all users takes, as people say it.
    let level = time("load:chat/2 users", Regressed, Metric::SystemToken, 1.25);
    assert_says(vec![level], vec![], "throughput of chat/2 users 20 % lower (1000 to 800 tok/s; 95 %: -21 to -19 %)");
}

#[test]
fn a_mean_and_an_anchor_are_named_as_what_they_are() {
    let mean = TimeEvidence { statistic: Statistic::Mean, ..moved(Metric::Itl, 1.2) };
    let details = "(1.00 to 1.20 ms; 95 %: +19 to +21 %)";
    let row = |time| row("decode/p128", Outcome::Regressed, Evidence::Time(time));
    assert_says(vec![row(mean)], vec![], &format!("the mean of decode 20 % slower {details}"));
    let anchor = TimeEvidence { against: Against::Anchor, interval: None, ..moved(Metric::Itl, 1.2) };
    assert_says(vec![row(anchor)], vec![], "decode 20 % slower than the anchor (1.00 to 1.20 ms)");
    // Pairs moved the other way than the two medians: the medians would only confuse.
    let apart = TimeEvidence { head_ns: Some(9e5), ..moved(Metric::Itl, 1.2) };
    assert_says(vec![row(apart)], vec![], "decode 20 % slower (95 %: +19 to +21 %)");
}

#[test]
fn counters_are_said_as_people_say_them() {
    let bytes = |subject| counter(subject, "allocated_bytes_per_token", 698_040, 734_904);
    let count = |subject| counter(subject, "allocations_per_token", 563, 587);
    let both = "36.0 KiB more allocated a token (+5.3 %), 24 more allocations a token (+4.3 %)";
    assert_says(vec![count("decode/p128"), bytes("decode/p128")], vec![], both);
    let everywhere = ["decode/p128", "generate/p128-o64"];
    let rows: Vec<VerdictRow> = everywhere.into_iter().flat_map(|case| [count(case), bytes(case)]).collect();
    assert_says(rows, vec![], both);
    let not_in_prefill = counter("prefill/p128", "end_live_bytes", 0, 0);
    let leaves = counter("decode/p128", "end_live_bytes", 0, 512);
    let left = "512 B more live at the end in decode. 1 other case passes";
    assert_says(vec![leaves, not_in_prefill], vec![], left);
    let open = memory(Witness::Heap, Outcome::Inconclusive, 530.0, 1.0);
    let rose = counter("decode/p128", "end_live_bytes", 0, 512);
    assert_says(vec![rose, open], vec![], "512 B more live at the end; whether memory leaks is not decided");
    let other = counter("decode/p128", "cache_lookups", 1, 2);
    assert_says(vec![other], vec![], "cache lookups +1 (+100 %)");
    let failed = counter("load:chat/2 users", "failed_requests", 0, 1);
    let more = |most_before| Reason::MoreFail { failed: 1, issued: 40, most_before, blocks: None };
    assert_says(vec![failed.clone().because(more(0.0))], vec![], "1 of 40 requests failed (none before)");
    assert_says(vec![failed.clone().because(more(0.013))], vec![], "1 of 40 requests failed (1.3 % before)");
    let shown = VerdictRow { outcome: Outcome::Advisory, ..failed.because(more(0.0)) };
    let said =
        "2 cases, 1 of them with the same output; 1 of 40 requests failed (none before), which is shown and not judged";
    assert_says(vec![same("decode/p128"), shown], vec![], said);
}

#[test]
fn another_output_says_from_where_on_and_that_its_time_was_not_judged() {
    use Outcome::OutputChanged;
    let changed = |subject, position| output(subject, OutputChanged, OutputComparison::Changed, position);
    let alone = "the model says something else from token 34 on; its time was not judged";
    assert_says(vec![changed("generate/p128-o64", Some(33))], vec![], alone);
    assert_says(
        vec![changed("prefill/p128", None), changed("decode/p128", None), changed("generate/p128-o64", Some(33))],
        vec![],
        "the model says something else from token 34 on (generate), and 2 more cases changed; their times were not judged",
    );
    let numbers = "the model computes other numbers by up to 2.7e-2 a logit (prefill); its time was not judged. \
                   1 other case passes";
    assert_says(vec![changed("prefill/p128", None), same("decode/p128")], vec![], numbers);
    // The words of a bench's hash are no tokens.
    let returned = "fib/20 returns something else; its time was not judged";
    assert_says(vec![changed("bench:fib/20", Some(0))], vec![], returned);
    let timed = vec![changed("decode/p128", Some(0)), decode(128, Outcome::WithinLimit, 1.0)];
    assert_says(timed, vec![], "the model says something else from token 1 on");
}

#[test]
fn kinds_come_in_one_order_whatever_the_order_of_the_rows() {
    use Outcome::{CounterRegressed, Leak, OutputChanged, Regressed, TargetMissed};
    let target = "prefill/* ttft_ms < 1".parse::<Target>().expect("a target");
    let missed =
        TargetEvidence { metric: target.metric(), limit: target.limit(), target: target.clone(), value: Some(1.21) };
    let rows = vec![
        row("prefill/p8", Outcome::TargetMissed, Evidence::Target(missed)),
        counter("decode/p128", "allocations_per_token", 1, 2),
        memory(Witness::Resident, Outcome::Leak, 20_000.0, 10_000.0),
        memory(Witness::Heap, Outcome::Leak, 542.4, 1.0),
        output("generate/p128-o64", Outcome::OutputChanged, OutputComparison::Changed, Some(33)),
        decode(128, Outcome::Regressed, 1.1),
    ];
    let verdict = Verdict::of(rows, vec![]);
    let said = of(&verdict);
    let parts: Vec<&str> = said.split("; ").collect();
    assert_eq!(parts.len(), 7, "an interval and times stand behind a semicolon, too: {said}");
    assert!(parts[0].starts_with("decode 10 % slower (1.00 to 1.10 ms"), "{said}");
    assert_eq!(parts[2], "the model says something else from token 34 on", "{said}");
    assert_eq!(parts[4], "the heap grows by 542 B a run over 100 runs", "{said}");
    assert_eq!(parts[5], "1 more allocation a token (+100 %)", "{said}");
    assert_eq!(parts[6], "prefill misses its target (prefill/* ttft_ms < 1) with 1.21 ms", "{said}");
    assert_eq!(outcomes(&verdict), [Regressed, OutputChanged, Leak, CounterRegressed, TargetMissed]);
}

#[test]
fn a_pass_says_what_would_have_shown() {
    use Outcome::{Improved, Pass, WithinLimit};
    let none = |ratio| TimeEvidence { interval: None, ..moved(Metric::Itl, ratio) };
    let within = |time| row("decode/p128", WithinLimit, Evidence::Time(time));
    let followed = [memory(Witness::Heap, Pass, 0.0, 1.0), memory(Witness::Resident, Pass, 0.0, 10_444.8)];
    let [heap, resident] = followed;
    let wide = TimeEvidence { smallest_slowdown: Some(1.026), ..none(1.01) };
    assert_says(
        vec![same("decode/p128"), within(none(1.0)), same("prefill/p8"), within(wide), heap, resident.clone()],
        vec![],
        "2 cases with the same output, none slower (a slowdown from 2.6 % on would show), no leak in 100 runs \
         (1 B in each run would show)",
    );
    assert_says(vec![resident], vec![], "no leak in 100 runs (10.2 KiB of resident memory in each run would show)");
    let blind = TimeEvidence { smallest_slowdown: None, ..none(1.0) };
    assert_says(vec![within(blind)], vec![], "1 case, none slower beyond its limit");
    let stored = TimeEvidence { against: Against::Baseline, threshold: Some(1.15), ..none(1.0) };
    assert_says(vec![within(stored)], vec![], "1 case, none slower by more than 15 %");
    let shown = TimeEvidence { shown: Some(Shown::Slower), ..none(1.012) };
    assert_says(vec![within(shown)], vec![], "1 case, decode 1.2 % slower, within the limit");
    let faster = decode(128, Improved, 0.88);
    let faster_says = "decode 12 % faster (1.00 ms to 880 µs; 95 %: -13 to -11 %); 1 case with the same output, none slower \
                       (a slowdown from 2.1 % on would show)";
    assert_says(vec![same("decode/p128"), faster], vec![], faster_says);
    let drifted = output("decode/p128", Outcome::Drifted, OutputComparison::Drifted, None);
    assert_says(vec![drifted], vec![], "1 case with the same output but for rounding");
    // A length that no case has is none.
    let other_length = output("prefill/p333", Outcome::Drifted, OutputComparison::Drifted, None);
    assert_says(
        vec![same("decode/p128"), within(none(1.0)), other_length],
        vec![],
        "1 case with the same output, none slower (a slowdown from 2.1 % on would show)",
    );
    assert_says(vec![counter("decode/p128", "allocations_per_token", 2, 2)], vec![], "1 case, no counter is worse");
}

#[test]
fn a_pass_that_judged_less_says_so() {
    use Outcome::{Accepted, Advisory, Layout, SameCode, WithinLimit};
    let untimed = TimeEvidence::new(Metric::Itl, Against::Base);
    let same_code = row("decode/p128", SameCode, Evidence::Time(untimed));
    let said = "1 case with the same output, nothing timed, as base and head are the same machine code";
    assert_says(vec![same("decode/p128"), same_code], vec![Note::SameCode], said);
    let layout = decode(128, Layout, 1.05).because(Reason::RunsNothingChanged { changed: 2 });
    assert_says(vec![layout], vec![], "1 case, decode runs nothing that changed and differs in time by layout alone");
    let unknown = output("decode/p128", Advisory, OutputComparison::Unknown, None);
    let said =
        "1 case without an output to compare with, time is shown and not judged (largest change: decode 50 % slower)";
    assert_says(vec![unknown, decode(128, Advisory, 1.5)], vec![], said);
    let level = |reason| time("load:chat/2 users", Advisory, Metric::Ttft, 1.0).because(reason);
    for (reason, notes, why) in [
        (Reason::NoBaseline, vec![], "there is no baseline"),
        (
            Reason::TooFewSessions { sessions: 9, days: Some(7), needed: 8 },
            vec![],
            "the baseline needs sessions of 1 more day",
        ),
        (
            Reason::TooFewSessions { sessions: 1, days: Some(1), needed: 8 },
            vec![Note::OneSession],
            "one run is compared with one",
        ),
        (Reason::FewServers { servers: 1, needed: 4 }, vec![], "of each side there are 1 of 4 servers"),
    ] {
        let said = format!("1 load level, time is shown and not judged, as {why}");
        assert_says(vec![level(reason)], notes, &said);
    }
    let silent = output("bench:fib/20", Outcome::Pass, OutputComparison::NotGiven, None);
    let bench = time("bench:fib/20", WithinLimit, Metric::Time, 1.0);
    assert_says(vec![silent, bench], vec![], "1 case, none slower (a slowdown from 2.1 % on would show)");
    let accepted = Reason::Accepted { up_to: Some("6%".parse().expect("a size")), reason: "meant".into() };
    let accepted = decode(128, Accepted, 1.05).because(accepted);
    let said = "head declares as intended: decode 5.0 % slower (1.00 to 1.05 ms; 95 %: +4.0 to +6.0 %); \
                1 case with the same output";
    assert_says(vec![same("decode/p128"), accepted.clone()], vec![], said);
    let said = "head declares as intended: decode/p128 5.0 % slower (1.00 to 1.05 ms; 95 %: +4.0 to +6.0 %); \
                2 cases, none of the others slower (a slowdown from 2.1 % on would show)";
    assert_says(vec![accepted, decode(512, WithinLimit, 1.0)], vec![], said);
}

#[test]
fn what_is_open_says_why_and_what_to_do() {
    use Outcome::{Inconclusive, Unstable, WithinLimit};
    let noisy = decode(128, Unstable, 1.012).because(Reason::TooNoisy { blocks: 24 });
    let said = "decode is not decided (+1.2 %; 95 %: +0.2 to +2.2 %): too noisy to judge in 24 blocks; measure again on a \
                quieter machine. 1 other case passes";
    let other = time("prefill/p128", WithinLimit, Metric::Ttft, 1.0);
    assert_says(vec![noisy.clone(), other.clone()], vec![], said);
    let late = time("generate/p8-o8", Unstable, Metric::E2e, 1.0);
    assert!(
        of(&Verdict::of(vec![noisy.clone(), late], vec![])).starts_with("decode and 1 more are not decided (+1.2 %")
    );
    let warned = Verdict::of(vec![noisy], vec![]).passing_undecided();
    assert!(of(&warned).ends_with("; undecided = \"warn\" lets it pass"), "{}", of(&warned));
    assert_eq!(verdict_file(&warned, &Inputs::new("cargo infergate")).failures, [], "it passes");
    let uncounted = CounterEvidence {
        name: "allocations_per_token".into(),
        unit: Unit::Number,
        base: Some(Counter { min: 1, max: 1 }),
        head: None,
        head_twice: None,
        tolerance: 0.0,
    };
    let said = "decode is not decided: base counts 'allocations a token' and head does not";
    assert_says(vec![row("decode/p128", Inconclusive, Evidence::Counter(uncounted))], vec![], said);

    let broken = |what: &str| Note::Broken { what: what.into() };
    let invalid = Verdict::of(vec![other.clone()], vec![broken("why"), broken("another")]).at_best(Outcome::Invalid);
    assert_eq!(of(&invalid), "not all is judged: why and 1 more");
    let none = VerdictRow { outcome: Outcome::Invalid, ..other.clone() };
    let invalid = Verdict::of(vec![none], vec![broken("why")]);
    assert_eq!(of(&invalid), "nothing is judged: why");
    let cut = Verdict::of(vec![other], vec![Note::CutShort { base: false }]).at_best(Outcome::Partial);
    assert!(of(&cut).starts_with("the run was cut short: "), "{}", of(&cut));
    assert_says(vec![], vec![], "nothing was compared");
}

#[test]
fn a_program_finds_in_the_file_what_a_person_finds_in_the_comment() {
    let mut inputs: Inputs = bench("fib/20");
    let terms = Terms { by_head: false, accept: Vec::new(), accepted_before: Vec::new() };
    inputs.paired.as_mut().expect("a pair").terms = Some(terms);
    let with_all = file(&inputs, "comment.md");
    assert!(!with_all.contains("[[accept]]"), "a leak cannot be accepted: {with_all}");
    let places = verdict_file(inputs.verdict.as_ref().expect("judged"), &inputs).where_to_look;
    assert!(!places.is_empty() && places.iter().all(|place| with_all.contains(&format!("- {place}\n"))), "{with_all}");
    let rows = &mut inputs.verdict.as_mut().expect("judged").rows;
    rows.retain(|row| !matches!(row.outcome, Outcome::Leak | Outcome::TargetMissed));
    let verdict = inputs.verdict.clone().expect("judged");
    let told = verdict_file(&verdict, &inputs);
    let comment = file(&inputs, "comment.md");
    assert!(comment.contains(&format!("\n\n{}\n", told.headline)), "{} is not in {comment}", told.headline);
    let commands = [told.repeat.as_deref(), told.find_commit.as_deref()];
    for said in commands.into_iter().chain([told.accept.as_deref(), told.how_sure.as_deref()]) {
        let said = said.expect("it can be said");
        assert!(comment.contains(said), "{said} is not in {comment}");
    }
    let failed = verdict.rows.iter().filter(|row| row.outcome.exit_code() != 0).count();
    assert!(failed > 0 && told.failures.len() == failed, "{:?}", told.failures);
    for failure in &told.failures {
        let row = &verdict.rows[failure.row];
        assert_eq!((&failure.subject, failure.outcome), (&row.subject, row.outcome));
    }
    let slower = told.failures.iter().find(|failure| failure.outcome == Outcome::Regressed).expect("the bench");
    assert_eq!(slower.what, "TTFT");
    assert!(slower.said.starts_with("fib/20: TTFT ") && slower.said.contains(", and it fails from +"), "{slower:?}");
    let text = serde_json::to_string(&told).expect("JSON");
    let read: Verdict = serde_json::from_str(&text).expect("a verdict again, without its words");
    assert_eq!(
        (read.verdict, read.exit_code, read.rows.len()),
        (verdict.verdict, verdict.exit_code, verdict.rows.len())
    );
}

fn any_row() -> impl Strategy<Value = VerdictRow> {
    use Outcome::{
        Accepted, Advisory, CounterRegressed, Improved, Inconclusive, Invalid, Leak, NotComparable, Pass, Regressed,
        WithinLimit,
    };
    let passing = [Accepted, Advisory, Improved, Pass, WithinLimit];
    let others = [CounterRegressed, Inconclusive, Invalid, Leak, NotComparable, Regressed];
    let subjects = ["decode/p8", "decode/p16", "generate/p8-o8", "bench:a b", "load:chat/2 users", "model", "process"];
    let evidence = (0..5_u8, 0.0..1e6_f64, any::<u32>());
    let outcome = select([passing.as_slice(), others.as_slice()].concat());
    (outcome, select(subjects.to_vec()), evidence).prop_map(|(outcome, subject, (kind, number, count))| {
        let at = Some(count as usize).filter(|at| at.is_multiple_of(2));
        let evidence = match kind {
            0 => time(subject, outcome, Metric::Itl, number).evidence,
            1 => output(subject, outcome, OutputComparison::Changed, at).evidence,
            2 => memory(Witness::Heap, outcome, number, number).evidence,
            3 => counter(subject, "peak_live_bytes", 7, u64::from(count)).evidence,
            _ => Evidence::Time(TimeEvidence::new(Metric::TtftP90, Against::Anchor)),
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
        prop_assert!(!said.is_empty() && printable(&said) == said, "{said}");
        prop_assert!(!said.contains("_ns") && !said.contains("  "), "{said}");
        prop_assert!(!outcomes(&verdict).is_empty());
    }
}
