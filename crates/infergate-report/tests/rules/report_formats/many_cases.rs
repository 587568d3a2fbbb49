//! A run of many benches: what failed and what moved is read first, the others are one line, and one picture shows all.

use infergate_core::case::{BenchName, Case};
use infergate_receipts::{Evidence, Outcome, OutputComparison, Shown, Verdict, VerdictRow};
use infergate_report::inputs::Inputs;
use infergate_report::terminal;
use infergate_report::topics::report;

use crate::report_formats::headline::{counter, output};
use crate::report_formats::support::{file, paired};

/// Of 96 benches one regressed, one is slower within its limit, and one is faster.
fn many() -> Inputs {
    let mut inputs = paired();
    let (receipt, verdict) = (inputs.paired.as_mut().expect("a run"), inputs.verdict.take().expect("a verdict"));
    let row = verdict.rows.iter().find(|row| row.time().is_some_and(|time| time.counted)).expect("a time");
    let case = receipt.cases.iter().find(|case| row.subject.case() == Some(case.id)).expect("its case").clone();
    receipt.cases.clear();
    let rows = (0..96).map(|bench| {
        let id = Case::Bench(BenchName::new(&format!("group/{bench}")).expect("a name"));
        let (outcome, shown, ratio) = match bench {
            70 => (Outcome::Regressed, Some(Shown::Slower), 1.057),
            50 => (Outcome::WithinLimit, Some(Shown::Slower), 1.012),
            20 => (Outcome::Improved, Some(Shown::Faster), 0.9),
            _ => (Outcome::WithinLimit, None, 1.0 + (f64::from(bench) - 48.0) * 1e-4),
        };
        let mut case = case.clone();
        (case.id, case.timed) = (id, true);
        receipt.cases.push(case);
        let mut row = row.clone();
        (row.subject, row.outcome) = (id.into(), outcome);
        if let Evidence::Time(time) = &mut row.evidence {
            (time.ratio, time.shown, time.interval) = (Some(ratio), shown, None);
        }
        row
    });
    let rows = rows.collect();
    inputs.verdict = Some(Verdict::of(rows, Vec::new()));
    inputs
}

#[test]
fn what_failed_and_what_moved_comes_first_and_the_others_are_one_line() {
    let inputs = many();
    let text = terminal::verdict("benches", inputs.verdict.as_ref().expect("a verdict"), "");
    let text = anstream::adapter::strip_str(&text).to_string();
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("case ")).skip(1).take(5).collect();
    let begins = ["group/70 ", "group/20 ", "group/50 ", "93 others ", ""];
    assert!(lines.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{text}");
    assert!(lines[3].contains("-0.5 to +0.5 %") && lines[3].ends_with("within limit"), "{}", lines[3]);
}

#[test]
fn a_page_folds_the_others_and_a_comment_leaves_them_out() {
    let inputs = many();
    let report = report(&inputs);
    let times = report.sections.iter().flat_map(|section| section.tables()).find(|table| table.id == "times");
    let (shown, folded) = times.expect("the table of times").parts();
    assert_eq!((shown.len(), folded.len()), (3, 93));
    let comment = file(&inputs, "comment.md");
    let changed = comment.split("<details>").next().expect("what is not folded");
    assert!(changed.contains("group/70") && !changed.contains("group/71"), "{changed}");
}

/// Those that got better fold first.
#[test]
fn a_comment_shows_the_five_worst_rows_and_folds_the_others() {
    let row = |bench: u64| {
        let (outcome, head) = if bench < 50 { (Outcome::Improved, 1) } else { (Outcome::CounterRegressed, 9) };
        let row = counter(&format!("bench:group/{bench}"), "allocations_per_iteration", 5, head);
        VerdictRow { outcome, ..row }
    };
    let changed = |benches: std::ops::Range<u64>| {
        let verdict = Verdict::of(benches.map(row).collect(), Vec::new());
        let comment = file(&Inputs { verdict: Some(verdict), ..Inputs::new("cargo infergate") }, "comment.md");
        let table = comment.lines().filter(|line| line.starts_with('|')).take(7).collect::<Vec<_>>();
        (table.join("\n"), comment)
    };
    let (table, comment) = changed(0..53);
    assert!((50..53).all(|bench| table.contains(&format!("group/{bench}"))), "{comment}");
    let (_, comment) = changed(50..58);
    let unfolded = comment.split("<details>").next().expect("what is not folded");
    let rows = |text: &str| (50..58).filter(|bench| text.contains(&format!("| group/{bench} |"))).count();
    assert_eq!((rows(unfolded), rows(&comment)), (5, 8), "{comment}");
}

#[test]
fn a_comment_says_which_outputs_changed_above_and_not_below() {
    let row = |case: &str| output(case, Outcome::OutputChanged, OutputComparison::Changed, Some(0));
    let verdict = Some(Verdict::of(["bench:fib", "bench:sum"].map(row).to_vec(), Vec::new()));
    let comment = file(&Inputs { verdict, ..Inputs::new("cargo infergate") }, "comment.md");
    assert!(comment.contains("\n**Changed output**\n\n- fib, sum: returns something else\n"), "{comment}");
    assert_eq!(comment.matches("returns something else").count(), 2, "the headline has it, too: {comment}");
}

#[test]
fn one_picture_has_those_that_changed_most() {
    let report = report(&many());
    let chart = report.charts().find(|chart| chart.id == "changes").expect("a picture");
    let names = &chart.y.names;
    assert_eq!((names.len(), names[29].as_str(), names[28].as_str()), (30, "group/20", "group/70"));
}
