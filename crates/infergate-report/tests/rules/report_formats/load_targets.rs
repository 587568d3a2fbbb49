//! Several targets in one report: beside each other, who wins, and where nothing is shown.

use infergate_core::load::{Arrivals, FailureClass, Spacing};
use infergate_receipts::{LoadReceipt, Price};

use crate::report_formats::agree::two;
use crate::report_formats::load::{cell, even, listed, number, of, table};
use crate::report_formats::runs::{self, Answers, fail, level, server};

/// Two servers at one user, by turns, the first of which is faster.
fn near_is_faster() -> LoadReceipt {
    two(Answers::new(20, 10, 4), Answers::new(100, 20, 4), 0)
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
    assert_eq!([0, 1].map(|at| number(table, at, "cost").is_some()), [true, false], "far has no price");
    assert!(number(table, 1, "failed").is_some_and(|share| share > 0.0 && share < 0.05));
}

#[test]
fn models_of_one_provider_share_a_line() {
    let mut receipt = near_is_faster();
    receipt.targets = vec![server("north/small", None), server("north/large", None)];
    let report = of(receipt.clone());
    let providers = table(&report, "load_providers", "providers");
    let shown = ["provider", "models", "failed", "ttft"].map(|id| cell(providers, 0, id).shown());
    assert_eq!(shown, ["north", "2", "0 %", "20.0 to 100 ms"]);
    for request in &mut receipt.levels[0].requests {
        fail(request, FailureClass::Timeout);
    }
    let why = cell(table(&of(receipt.clone()), "load_providers", "providers"), 0, "ttft").why();
    assert_eq!(why.as_deref(), Some("too many requests failed"));
    receipt.targets[1] = server("south/large", None);
    assert!(of(receipt).section("load_providers").is_none(), "one model each");
}

#[test]
fn what_a_dearer_target_costs_and_gains_is_advice() {
    let mut receipt = near_is_faster();
    let price = |input_per_million| Some(Price { input_per_million, output_per_million: 2.0 * input_per_million });
    receipt.targets = vec![server("near", price(1.0)), server("far", price(2.0))];
    let report = of(receipt);
    let advice = format!("Weigh price against speed: far costs 2.00 times as much as near. {}", report.title);
    assert!(listed(&report, "load_advice").contains(&advice), "{advice}");
}

#[test]
fn who_has_the_first_word_is_advice_where_all_write_as_fast_as_people_read() {
    let report = of(near_is_faster());
    let advice = "Where somebody waits for the first word, take near: 20.0 ms at 1 user. All write at least as fast as people read, so more \
                  speed pays only where nobody reads along";
    assert!(listed(&report, "load_advice").contains(&advice.to_owned()), "{:?}", listed(&report, "load_advice"));
    let slow = of(two(Answers::new(20, 300, 4), Answers::new(100, 20, 4), 0));
    assert!(!listed(&slow, "load_advice").iter().any(|advice| advice.contains("first word, take")));
}

#[test]
fn a_level_that_mostly_failed_is_no_best_one() {
    let mut receipt = near_is_faster();
    for request in
        receipt.levels[0].requests.iter_mut().filter(|request| request.target == 0 && request.request % 3 > 0)
    {
        fail(request, FailureClass::Status429);
    }
    let report = of(receipt);
    let speed = table(&report, "load_users", "decode_speed");
    assert_eq!(cell(speed, 0, "p50").why().as_deref(), Some("too many requests failed"));
    assert!(number(speed, 1, "p50").is_some());
}

/// Users take them in turn, so that the slower one decides how many tokens come out of the faster one.
#[test]
fn the_output_of_all_is_not_one_targets_own() {
    let report = of(runs::targets());
    let levels = table(&report, "load_levels", "levels");
    assert!(levels.columns.iter().all(|column| !["system", "scaling"].contains(&column.id)));
    let failures = table(&report, "load_failures", "failures");
    assert!(number(failures, 1, "uptime").is_some_and(|uptime| 0.9 < uptime && uptime < 1.0), "by its own requests");
    let in_flight = [0, 1].map(|at| number(levels, at, "in_flight").expect("a number"));
    assert!((in_flight[0] + in_flight[1] - 2.0).abs() < 1e-9 && in_flight[0] < in_flight[1], "{in_flight:?}");
}

/// Each prompt goes to both targets before the next one does.
#[test]
fn answers_to_the_same_prompts_are_compared() {
    let mut receipt = near_is_faster();
    let report = of(receipt.clone());
    let columns = &table(&report, "load_targets", "targets").columns;
    assert!(columns.iter().all(|column| column.id != "same"), "no prompt was sent twice");
    receipt.dataset_prompts = Some(41);
    for request in &mut receipt.levels[0].requests {
        let prompt = request.request / 2;
        let other = request.target == 1 && prompt < 10;
        request.output_sha256 = Some(if other { format!("other {prompt}") } else { prompt.to_string() });
    }
    let report = of(receipt.clone());
    let targets = table(&report, "load_targets", "targets");
    assert_eq!(cell(targets, 0, "same").shown(), "", "the first target is what others are compared with");
    let share = cell(targets, 1, "same").quantity().copied().expect("a share");
    let (low, high) = share.interval.expect("its interval");
    assert_eq!(share.value, 30.0 / 40.0);
    assert!(low < share.value && share.value < high && high < 0.9, "{share:?}");

    // A failed answer is none, and a target that says one thing now and another then agrees with nobody.
    let requests = &mut receipt.levels[0].requests;
    fail(&mut requests[20], FailureClass::Timeout);
    assert_eq!(number(table(&of(receipt.clone()), "load_targets", "targets"), 1, "same"), Some(29.0 / 39.0));
    receipt.levels.push(receipt.levels[0].clone());
    for request in &mut receipt.levels[1].requests {
        request.output_sha256 = request.output_sha256.take().map(|hash| hash + " again");
    }
    assert_eq!(number(table(&of(receipt), "load_targets", "targets"), 1, "same"), Some(0.0));
}

#[test]
fn quarters_are_of_each_target() {
    let report = of(runs::targets());
    let quarters = table(&report, "load_stability", "quarters");
    let targets: Vec<String> = (0..quarters.rows.len()).map(|at| cell(quarters, at, "target").shown()).collect();
    assert_eq!(targets, ["near", "near", "near", "far", "far", "far"], "three figures of each");
}

/// Ten of forty requests of one user, one each 160 ms, are refused: a quarter of the time nobody is answered, also where each is
/// refused at once, and where no other one follows.
#[test]
fn a_target_that_answers_nobody_is_down() {
    for (first, refused_ns) in [(10, 160_000_000), (10, 300_000), (30, 160_000_000)] {
        let mut receipt = even();
        receipt.levels = vec![level(0, 1, 40, |_| Answers::new(100, 20, 4))];
        for request in &mut receipt.levels[0].requests[first..first + 10] {
            fail(request, FailureClass::Status429);
            request.chunk_ns.clear();
            request.ended_ns = request.scheduled_ns + refused_ns;
        }
        let report = of(receipt);
        let table = table(&report, "load_failures", "failures");
        assert_eq!(["rate", "down", "uptime"].map(|id| number(table, 0, id)), [Some(0.25), Some(1600e6), Some(0.75)]);
        assert_eq!(cell(table, 0, "classes").shown(), "10 with status 429");
        let advice = listed(&report, "load_advice");
        assert!(advice[0].ends_with("10 of 40 requests were refused (429) at 1 user"), "{advice:?}");
    }
}

/// One request each five seconds: nobody asks between two of them, and none is in flight.
#[test]
fn at_a_rate_a_target_is_down_until_the_last_request_that_failed() {
    for (refused, down_ns) in [(10..11, 300_000.0), (10..13, 10_000_300_000.0)] {
        let mut receipt = even();
        receipt.levels = vec![level(0, 1, 40, |_| Answers::new(100, 20, 4))];
        receipt.levels[0].arrivals = Arrivals::Open { requests_per_s: 0.2, spacing: Spacing::Constant };
        for (request, start_ns) in receipt.levels[0].requests.iter_mut().zip((0..).step_by(5_000_000_000)) {
            let moved = |ns: u64| ns - request.scheduled_ns + start_ns;
            request.chunk_ns = request.chunk_ns.iter().copied().map(moved).collect();
            (request.sent_ns, request.ended_ns) = (moved(request.sent_ns), moved(request.ended_ns));
            request.scheduled_ns = start_ns;
        }
        for request in &mut receipt.levels[0].requests[refused] {
            fail(request, FailureClass::Status429);
            request.chunk_ns.clear();
            request.ended_ns = request.scheduled_ns + 300_000;
        }
        let report = of(receipt);
        assert_eq!(number(table(&report, "load_failures", "failures"), 0, "down"), Some(down_ns));
    }
}
