//! Several targets in one report: beside each other, who wins, and where nothing is shown.

use cargo_infergate::receipt::{LevelRecord, LoadReceipt};
use infergate::load::{Arrivals, FailureClass};

use crate::load::{cell, findings, number, of, table};
use crate::runs::{self, Answers, fail, in_turn, level, receipt, server};
use cargo_infergate::load::scenario::Scenario;

/// Two servers at one user, by turns.
fn two(first: Answers, second: Answers) -> LoadReceipt {
    let level: LevelRecord = in_turn(level(0, 1, 80, |number| if number % 2 == 0 { first } else { second }), 2);
    let targets = vec![server("near", None), server("far", None)];
    receipt(targets, vec![Scenario::plain("chatbot", 20, 4)], vec![level])
}

#[test]
fn each_target_has_a_line_with_intervals() {
    let report = of(runs::targets());
    let table = table(&report, "load_targets", "targets");
    assert_eq!([0, 1].map(|at| cell(table, at, "target").shown()), ["near", "far"]);
    assert_eq!([0, 1].map(|at| number(table, at, "ttft")), [Some(20e6), Some(100e6)]);
    assert_eq!([0, 1].map(|at| number(table, at, "decode_speed")), [Some(50.0), Some(100.0)]);
    assert_eq!(cell(table, 0, "e2e").quantity().and_then(|e2e| e2e.interval), Some((80e6, 80e6)));
    assert_eq!(number(table, 0, "failed"), Some(0.0));
    assert!(number(table, 1, "failed").is_some_and(|share| share > 0.0 && share < 0.05));
    assert!(report.section("load_scaling").is_none(), "targets share the users");
}

#[test]
fn who_wins_by_the_length_of_the_answer() {
    let report = of(runs::targets());
    let pairs = table(&report, "load_winners", "pairs");
    assert_eq!(["short", "long"].map(|id| cell(pairs, 0, id).shown()), ["near", "far"]);
    // 20 + 20 n and 100 + 10 n meet at 8.
    let tokens = cell(pairs, 0, "tokens").quantity().expect("a crossing");
    assert_eq!((tokens.value, tokens.interval), (8.0, Some((8.0, 8.0))));
    let ids: Vec<&str> =
        report.section("load_winners").expect("it is there").charts().map(|chart| &*chart.id).collect();
    assert_eq!(ids, ["load-winners-chatbot-1"]);

    let always = of(two(Answers::new(20, 10, 4), Answers::new(100, 20, 4)));
    let pairs = table(&always, "load_winners", "pairs");
    assert_eq!(["short", "long"].map(|id| cell(pairs, 0, id).shown()), ["near", "near"]);
    assert_eq!(cell(pairs, 0, "tokens").why().as_deref(), Some("one of the two is faster for every length"));
}

#[test]
fn each_use_has_its_best_target_or_none() {
    let report = of(runs::targets());
    let uses = table(&report, "load_uses", "uses");
    // Search by TTFT, agents by tokens a second, voice by E2E: 80 ms against 130.
    assert_eq!([0, 1, 2].map(|at| cell(uses, at, "best").shown()), ["near", "far", "near"]);
    assert_eq!([0, 1, 2].map(|at| cell(uses, at, "next").shown()), ["far", "near", "far"]);

    let same = of(two(Answers::new(20, 10, 4), Answers::new(20, 10, 4)));
    let uses = table(&same, "load_uses", "uses");
    assert_eq!([0, 1, 2].map(|at| cell(uses, at, "best").shown()), ["none: intervals overlap"; 3]);
    let pairs = table(&same, "load_winners", "pairs");
    assert_eq!(cell(pairs, 0, "short").shown(), "neither: intervals overlap");
    assert_eq!(cell(pairs, 0, "tokens").why().as_deref(), Some("it is not shown that the two cross"));
}

#[test]
fn answers_of_different_lengths_are_not_compared_without_a_word() {
    assert!(findings(&of(runs::targets()), "load_targets").is_empty());
    let report = of(two(Answers::new(20, 10, 8), Answers::new(20, 10, 4)));
    let said = &findings(&report, "load_targets")[0].said;
    assert!(said.starts_with("Answers differ in length: 8 tokens (near, 1 user) and 4 (far, 1 user)"), "{said}");
}

/// Requests are numbered from 0, and 41 prompts come in turn: each of the first 39 goes to one target, and 41 requests later to the
/// other one.
#[test]
fn answers_to_the_same_prompts_are_compared() {
    let mut receipt = two(Answers::new(20, 10, 4), Answers::new(100, 20, 4));
    assert!(of(receipt.clone()).section("load_agreement").is_none(), "no prompt was sent twice");
    receipt.dataset_prompts = Some(41);
    for request in &mut receipt.levels[0].requests {
        let prompt = request.request % 41;
        let other = request.target == 1 && prompt < 10;
        request.output_sha256 = Some(if other { format!("other {prompt}") } else { prompt.to_string() });
    }
    let report = of(receipt.clone());
    let agreement = table(&report, "load_agreement", "agreement");
    assert_eq!(["first", "second"].map(|id| cell(agreement, 0, id).shown()), ["near", "far"]);
    assert_eq!(["prompts", "same"].map(|id| number(agreement, 0, id)), [Some(39.0), Some(29.0)]);
    let share = cell(agreement, 0, "share").quantity().copied().expect("a share");
    let (low, high) = share.interval.expect("its interval");
    assert_eq!(share.value, 29.0 / 39.0);
    assert!(low < share.value && share.value < high && high < 0.9, "{share:?}");

    // A failed answer is none, and a target that says one thing now and another then agrees with nobody.
    let requests = &mut receipt.levels[0].requests;
    fail(&mut requests[20], FailureClass::Timeout);
    receipt.levels.push(receipt.levels[0].clone());
    for request in &mut receipt.levels[1].requests {
        request.output_sha256 = request.output_sha256.take().map(|hash| hash + " again");
    }
    let report = of(receipt);
    let agreement = table(&report, "load_agreement", "agreement");
    assert_eq!(["prompts", "same"].map(|id| number(agreement, 0, id)), [Some(38.0), Some(0.0)]);
}

#[test]
fn a_target_without_a_price_says_so() {
    let report = of(runs::targets());
    let cost = table(&report, "load_cost", "cost");
    assert!(number(cost, 0, "request").is_some());
    assert_eq!(cell(cost, 1, "request").why().as_deref(), Some("no price was given"));
}

#[test]
fn quarters_are_of_each_target() {
    let report = of(runs::targets());
    let quarters = table(&report, "load_stability", "quarters");
    assert_eq!(quarters.rows.len(), 8, "three figures and the failures of each");
    let failed: Vec<f64> =
        ["first", "second", "third", "fourth"].map(|id| number(quarters, 7, id).expect("a share")).into();
    assert_eq!(failed.iter().filter(|share| **share > 0.0).count(), 1, "{failed:?}");
    assert_eq!(cell(quarters, 7, "figure").shown(), "failed");
}

/// Every two of a hundred targets at many levels would be compared for hours.
#[test]
fn pairs_are_bounded() {
    let level = in_turn(level(0, 1, 1 + 40 * 8, |_| Answers::new(20, 10, 4)), 40);
    let mut other = level.clone();
    other.arrivals = Arrivals::Closed { users: 1 };
    let names = (0..40).map(|number| server(&format!("t{number}"), None));
    let report = of(receipt(names.collect(), vec![Scenario::plain("chatbot", 20, 4)], vec![level, other]));
    let section = report.section("load_winners").expect("it is there");
    assert_eq!(section.tables().map(|table| table.rows.len()).sum::<usize>(), 200);
    let said = format!("{:?}", section.blocks);
    assert!(said.contains("1360 more pairs of targets were not compared"), "40 x 39 / 2 at 2 levels");
}
