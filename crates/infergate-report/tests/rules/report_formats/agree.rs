//! What is said in several places is said alike: on the terminal, on pages, in comments and in files for other tools.

use infergate_receipts::Scenario;
use infergate_receipts::{Against, Evidence, LoadReceipt, Metric, Note, Outcome, TimeEvidence, Verdict, VerdictRow};
use infergate_report::export::markup::prose;
use infergate_report::inputs::Inputs;
use infergate_report::model::Block;
use infergate_report::terminal;
use infergate_report::topics::report;
use infergate_report::verdict_file::verdict_file;
use infergate_report::words::headline::outcome;

use crate::report_formats::load::{cell, of, table};
use crate::report_formats::runs::{Answers, in_turn, level, receipt, server};
use crate::report_formats::support::{file, load};

const OUTCOMES: [Outcome; 13] = [
    Outcome::Accepted,
    Outcome::WithinLimit,
    Outcome::Improved,
    Outcome::Advisory,
    Outcome::Regressed,
    Outcome::OutputChanged,
    Outcome::Leak,
    Outcome::Unstable,
    Outcome::Inconclusive,
    Outcome::Invalid,
    Outcome::Partial,
    Outcome::NotComparable,
    Outcome::Failed,
];

/// Two targets by turns; times of each move by up to so many milliseconds from request to request.
pub fn two(first: Answers, second: Answers, moves_ms: u64) -> LoadReceipt {
    let answers = |number: u64| {
        let own = if number.is_multiple_of(2) { first } else { second };
        let moved = number * 7919 / 2 % (moves_ms + 1);
        Answers::new(own.ttft_ms + moved, own.itl_ms + moved, own.tokens)
    };
    let level = in_turn(level(0, 1, 80, answers), 2);
    receipt(vec![server("near", None), server("far", None)], vec![Scenario::plain("chatbot", 20, 4)], vec![level])
}

#[test]
fn a_bar_in_a_name_is_shown_as_it_is_in_a_sentence() {
    assert_eq!(prose("`a|b` is slower"), "`a|b` is slower");
}

#[test]
fn the_terminal_and_the_page_say_alike_who_is_faster() {
    let answers = |ttft_ms, itl_ms| Answers::new(ttft_ms, itl_ms, 4);
    let neither = "not shown to differ";
    let cases = [
        (answers(20, 20), answers(100, 10), 0, ["near", "far"], "near is faster up to 9 tokens of answer"),
        (answers(90, 90), answers(20, 10), 0, ["far", "far"], "far is faster than near for every length of answer"),
        // The medians differ by less than they are known to.
        (answers(20, 10), answers(22, 12), 40, [neither, neither], "neither near nor far is shown to be faster"),
        (answers(20, 10), answers(200, 11), 40, ["near", neither], "near is faster than far for short answers"),
    ];
    for (first, second, moves_ms, expected, said) in cases {
        let receipt = two(first, second, moves_ms);
        let on_terminal = terminal::report(&load(receipt.clone()));
        assert!(on_terminal.contains(said), "{said} is not in {on_terminal}");
        let page = of(receipt);
        let pairs = table(&page, "load_winners", "pairs");
        assert_eq!(["short", "long"].map(|id| cell(pairs, 0, id).shown()), expected, "{said}");
        let crosses = cell(pairs, 0, "tokens").quantity().is_some();
        assert_eq!(crosses, said.contains("up to"), "{said}");
    }
}

fn row(outcome: Outcome) -> VerdictRow {
    let time = TimeEvidence {
        base_ns: Some(1e6),
        head_ns: Some(1.5e6),
        ratio: Some(1.5),
        threshold: (outcome != Outcome::Advisory).then_some(1.02),
        ..TimeEvidence::new(Metric::Itl, Against::Base)
    };
    VerdictRow::new("decode/p128".parse::<infergate_core::case::Case>().expect("a case"), outcome, Evidence::Time(time))
}

/// One row a kind, runs that nothing of passes, and what `inconclusive = "warn"` lets pass.
fn verdicts() -> Vec<Verdict> {
    let of = |outcome| Verdict::of(vec![row(outcome)], vec![Note::NoBaseline { machine_class: "a-class".into() }]);
    let mut verdicts: Vec<Verdict> = OUTCOMES.into_iter().map(of).collect();
    verdicts.extend([Outcome::Partial, Outcome::Invalid, Outcome::NotComparable].map(|at_best| {
        let broken = Verdict { notes: vec![Note::Broken { what: "why".into() }], ..of(Outcome::WithinLimit) };
        broken.at_best(at_best)
    }));
    verdicts.push(of(Outcome::Inconclusive).passing_undecided());
    verdicts.push(Verdict::of(vec![row(Outcome::WithinLimit), row(Outcome::Advisory)], Vec::new()));
    verdicts
}

#[test]
fn a_verdict_is_the_same_on_the_terminal_in_a_comment_and_for_other_tools() {
    for verdict in verdicts() {
        let on_terminal = terminal::verdict("who", &verdict, "");
        let (words, code) = (outcome(&verdict), verdict.exit_code);
        let decision = on_terminal.lines().last().expect("a decision").to_owned();
        let plain = anstream::adapter::strip_str(&decision).to_string();
        assert!(plain.starts_with(&format!("verdict: {words} (exit {code})")), "{plain}");

        let inputs = Inputs { verdict: Some(verdict.clone()), ..Inputs::new("cargo infergate") };
        let page = report(&inputs);
        let headline = page.headline.as_ref().expect("a headline");
        assert_eq!((headline.outcome, headline.exit_code), (verdict.verdict, code));
        let said = &headline.said;
        assert!(plain.ends_with(&format!("(exit {code}): {said}")), "{plain} {said}");
        let line = format!("{words}: {said}");
        assert_eq!(verdict_file(&verdict, &inputs).headline, line);
        for block in page.sections.iter().flat_map(|section| &section.blocks) {
            let Block::List(said) = block else { continue };
            for said in said {
                assert!(on_terminal.contains(&format!("- {said}\n")), "{said} is not in {on_terminal}");
            }
        }

        let comment = file(&inputs, "comment.md");
        let heading = comment.lines().nth(1).and_then(|line| line.split_once(' ')?.1.split_once(' '));
        assert_eq!(heading.map(|(_, heading)| heading), Some(&*prose(&line)), "{comment}");
        let is_unjudged = verdict.rows.iter().any(|row| row.outcome == Outcome::Advisory);
        assert!(!is_unjudged || said.contains("advisory"), "{said}");
        let junit = file(&inputs, "junit.xml");
        let all_pass =
            junit.contains("failures=\"0\" errors=\"0\"") && !junit.contains("<failure") && !junit.contains("<error");
        assert_eq!(all_pass, code == 0, "{verdict:?} {junit}");
        let annotations = file(&inputs, "annotations.txt");
        assert_eq!(annotations.contains("::error"), matches!(code, 1 | 2), "{verdict:?} {annotations}");
    }
}

/// GitHub shows ten of a kind.
#[test]
fn a_failure_has_an_annotation_however_many_cases_are_open_before_it() {
    let rows = [vec![row(Outcome::Inconclusive); 12], vec![row(Outcome::Regressed)]].concat();
    let verdict = Some(Verdict::of(rows, Vec::new()));
    let text = file(&Inputs { verdict, ..Inputs::new("cargo infergate") }, "annotations.txt");
    let count = |level: &str| text.lines().filter(|line| line.starts_with(level)).count();
    assert_eq!((count("::warning "), count("::error ")), (10, 1), "{text}");
}
