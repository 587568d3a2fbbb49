//! What a load receipt says in a report, on runs whose times are known.

use infergate_core::engine::{Cost, EngineInfo};
use infergate_core::load::{Arrivals, FailureClass, Spacing};
use infergate_receipts::{Build, LevelRecord, LoadReceipt, Outcome, Price, Probes, TargetRecord};
use infergate_report::model::{Block, Cell, Finding, Marks, Report, Table, Tone};
use infergate_report::topics::report;

use crate::report_formats::runs::{self, Answers, MS, fail, level, receipt, server};
use crate::report_formats::support::{all, load};
use infergate_receipts::Scenario;

pub fn of(receipt: LoadReceipt) -> Report {
    report(&load(receipt))
}

pub fn table<'a>(report: &'a Report, section: &str, id: &str) -> &'a Table {
    let section = report.section(section).unwrap_or_else(|| panic!("a section {section}"));
    section.tables().find(|table| table.id == id).unwrap_or_else(|| panic!("a table {id}"))
}

/// The cell of the column `id` in the row `at`.
pub fn cell<'a>(table: &'a Table, at: usize, id: &str) -> &'a Cell {
    let column = table.columns.iter().position(|column| column.id == id).unwrap_or_else(|| panic!("a column {id}"));
    &table.rows[at].cells[column]
}

pub fn number(table: &Table, at: usize, id: &str) -> Option<f64> {
    cell(table, at, id).quantity().map(|quantity| quantity.value)
}

/// The findings of a section.
fn findings<'a>(report: &'a Report, section: &str) -> Vec<&'a Finding> {
    let blocks = report.section(section).map_or(&[][..], |section| &section.blocks);
    let found = blocks.iter().filter_map(|block| if let Block::Findings(found) = block { Some(found) } else { None });
    found.flatten().collect()
}

/// The finding whose sentence begins so, wherever it stands.
pub fn finding<'a>(report: &'a Report, begins: &str) -> Option<&'a Finding> {
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let found = blocks.filter_map(|block| if let Block::Findings(found) = block { Some(found) } else { None });
    found.flatten().find(|finding| finding.said.starts_with(begins))
}

/// One scenario at 1 and 2 users, 100 ms to the first of 4 tokens and 20 ms between them.
pub fn even() -> LoadReceipt {
    let answers = |_| Answers::new(100, 20, 4);
    let levels = vec![level(0, 1, 30, answers), level(0, 2, 30, answers)];
    receipt(vec![server("", None)], vec![Scenario::plain("chatbot", 20, 4)], levels)
}

/// The level of fewer requests says how many a P99 takes.
#[test]
fn a_p99_stands_where_a_level_has_requests_enough() {
    let mut receipt = even();
    receipt.levels[1] = level(0, 2, 200, |_| Answers::new(100, 20, 4));
    let report = of(receipt);
    let table = table(&report, "load_users", "itl");
    assert_eq!(number(table, 1, "p99"), Some(20e6));
    assert_eq!(cell(table, 0, "p99").why().as_deref(), Some("takes 368 requests"));
}

#[test]
fn scaling_is_against_one_user_alone() {
    let report = of(even());
    let row =
        |report: &Report, at| ["system", "scaling"].map(|id| number(table(report, "load_levels", "levels"), at, id));
    assert_eq!([row(&report, 0), row(&report, 1)], [[Some(25.0), Some(1.0)], [Some(50.0), Some(1.0)]]);
    let mut receipt = even();
    receipt.levels.remove(0);
    assert_eq!(row(&of(receipt), 0), [Some(50.0), None], "nobody was alone");
}

/// The sentences of a section's lists.
pub fn listed(report: &Report, section: &str) -> Vec<String> {
    let blocks = report.section(section).map_or(&[][..], |section| &section.blocks);
    let lists = blocks.iter().filter_map(|block| if let Block::List(list) = block { Some(list) } else { None });
    lists.flatten().cloned().collect()
}

/// The piece of advice that says `what`.
fn advice(receipt: LoadReceipt, what: &str) -> Option<String> {
    listed(&of(receipt), "load_advice").into_iter().find(|said| said.contains(what))
}

#[test]
fn efficiency_above_100_percent_is_explained() {
    let above =
        |receipt| listed(&of(receipt), "load_levels").into_iter().find(|remark| remark.starts_with("scaling is"));
    assert_eq!(above(even()), None, "100 %");
    let mut receipt = even();
    receipt.levels[0] = level(0, 1, 30, |_| Answers::new(300, 60, 4));
    let said = above(receipt).expect("a remark");
    assert!(said.starts_with("scaling is 300 % at 2 users: 1 user ran slower"), "{said}");
}

/// Of 2 users, who wait in turn, nobody stops at one where 8 of them get nearly three times as much.
#[test]
fn throughput_ends_where_no_higher_load_gets_more() {
    let levels = [(1, 100), (2, 300), (8, 400)]
        .map(|(users, ttft_ms)| level(0, users, 30, move |_| Answers::new(ttft_ms, 20, 4)));
    let said = |levels: &[LevelRecord]| advice(LoadReceipt { levels: levels.to_vec(), ..even() }, "only throughput");
    assert!(said(&levels[..2]).is_some_and(|said| said.contains("stop at 1 user: 2 users get")));
    assert_eq!(said(&levels), None);
}

#[test]
fn scenarios_that_hold_other_numbers_of_users_are_told_apart() {
    let scenarios = ["chatbot", "code"].map(|name| Scenario::plain(name, 20, 4)).to_vec();
    let levels = [(0, 1, 100), (0, 2, 200), (1, 1, 100), (1, 2, 400)]
        .map(|(scenario, users, ttft_ms)| level(scenario, users, 30, move |_| Answers::new(ttft_ms, 20, 4)));
    let receipt = LoadReceipt { scenarios, levels: levels.to_vec(), ..even() };
    let said = advice(receipt, "reads along").expect("advice");
    assert!(said.starts_with("Serve up to 1 user "), "{said}");
    assert!(said.ends_with("; each alone holds: chatbot 2 users, code 1 user"), "{said}");
}

/// Two users who get 20 % of what each gets alone from an engine whose step reads `step_bytes` and whose prompts take
/// `prompt_flops` a token, on hardware that does 1e9 of each a second.
fn crowded(step_bytes: f64, prompt_flops: f64) -> LoadReceipt {
    let cost = Cost {
        decode_bytes_fixed: step_bytes,
        decode_bytes_per_context_token: 0.0,
        prefill_flops_per_token: prompt_flops,
        prefill_flops_per_pair: 0.0,
    };
    let target = TargetRecord::Local {
        engine: Box::new(EngineInfo::default()),
        build: Box::new(Build::default()),
        threads: 1,
        load_ns: 1,
        cost: Some(cost),
    };
    let levels = vec![
        level(0, 1, 30, |_| Answers::new(100, 20, 4)),
        // A first step of both users after 500 ms, and three more.
        level(0, 2, 30, |_| Answers::new(500, 100, 4)),
    ];
    let probes = Probes { memory_read_bytes_per_s: 1e9, fma_flops_per_s: 1e9 };
    let receipt = receipt(vec![target], vec![Scenario::plain("chatbot", 20, 4)], levels);
    LoadReceipt { probes: Some(probes), ..receipt }
}

#[test]
fn the_likely_bottleneck_is_what_takes_most_of_the_time() {
    // Four steps of 120 ms in 800; prompts of 20 tokens, two at once, in 480 of 800 ms, and decoding in 9 %; four of 10 ms.
    for (bytes, flops, what, shares) in [
        (1.2e8, 0.0, "memory bandwidth is", ["60 %", "0 %"]),
        (0.0, 1.2e7, "compute is", ["0 %", "69 %"]),
        (1e7, 0.0, "neither", ["5 %", "0 %"]),
    ] {
        let said = advice(crowded(bytes, flops), what).unwrap_or_else(|| panic!("{what}"));
        assert!(said.contains("20 %") && shares.iter().all(|share| said.contains(share)), "{said}");
    }
    let unknown = LoadReceipt { probes: None, ..crowded(1.2e8, 0.0) };
    assert_eq!(advice(unknown, "memory bandwidth"), None, "nobody probed");
    assert_eq!(advice(crowded(1e9, 0.0), "memory bandwidth"), None, "more than all of the time");
    let even = LoadReceipt { levels: even().levels, ..crowded(1e7, 0.0) };
    assert_eq!(advice(even, "neither"), None, "each user gets as much as one alone");
}

#[test]
fn a_stream_has_a_class_and_its_gaps_have_shares() {
    // A gap of 10, of 30 and of 80 ms in turn.
    let mut receipt = even();
    for request in receipt.levels.iter_mut().flat_map(|level| &mut level.requests) {
        let start = request.scheduled_ns;
        request.chunk_ns = [20, 30, 60, 140].map(|ms| start + ms * MS).into();
    }
    let report = of(receipt.clone());
    let drawn = |report: &Report| {
        let chart = report.charts().find(|chart| chart.id == "load-itl").expect("a chart");
        chart.layers.last().expect("a line").marks.clone()
    };
    let at = |marks: Marks| if let Marks::MarkedLine(places) = marks { places[0].y } else { panic!("a line") };
    assert_eq!(at(drawn(&report)), 30e6, "the middle gap of the only scenario");
    receipt.scenarios.push(Scenario::plain("code", 20, 4));
    let more = receipt.levels.clone().into_iter().map(|level| LevelRecord { scenario: 1, ..level });
    receipt.levels.extend(more);
    assert_eq!(at(drawn(&of(receipt))), 40e6, "the mean gap of several");
    let table = table(&report, "load_users", "itl");
    assert_eq!(["mean", "p50"].map(|id| number(table, 0, id)), [Some(40e6), Some(30e6)]);
    assert_eq!(cell(table, 0, "feels").shown(), "acceptable");
    assert_eq!(["instant", "acceptable", "sluggish"].map(|id| number(table, 0, id)), [Some(1.0 / 3.0); 3]);
}

/// Whatever the sections find stands before everything else, bad news first.
#[test]
fn findings_come_first() {
    let report = of(runs::scenarios());
    let first = report.sections.first().expect("sections");
    assert_eq!(first.id, "findings");
    let tones: Vec<Tone> = findings(&report, "findings").iter().map(|finding| finding.tone).collect();
    assert!(tones.contains(&Tone::Plain), "{tones:?}");
    assert!(tones.is_sorted_by_key(|tone| *tone != Tone::Warn), "{tones:?}");
}

/// Every axis of every picture says what it shows.
#[test]
fn axes_have_labels() {
    for (name, inputs) in all() {
        for chart in infergate_report::topics::report(&inputs).charts() {
            assert!(!chart.x.label.is_empty() && !chart.y.label.is_empty(), "{name}: {}", chart.id);
        }
    }
}

#[test]
fn a_run_that_slows_down_is_named() {
    let mut receipt = even();
    receipt.levels = vec![level(0, 1, 41, |number| Answers::new(if number < 31 { 100 } else { 200 }, 20, 4))];
    let report = of(receipt);
    let table = table(&report, "load_stability", "quarters");
    assert_eq!(cell(table, 0, "figure").shown(), "TTFT P50");
    let medians = ["first", "second", "third", "fourth"].map(|id| number(table, 0, id));
    assert_eq!(medians, [Some(100e6), Some(100e6), Some(100e6), Some(200e6)]);
    assert_eq!(number(table, 0, "change"), Some(1.0));
    assert!(finding(&report, "At 1 user TTFT was unsteady").is_some_and(|finding| finding.tone == Tone::Warn));
}

#[test]
fn failures_stand_beside_the_numbers_with_their_rate() {
    let mut receipt = even();
    assert!(of(receipt.clone()).section("load_failures").is_none(), "nothing failed");
    let requests = &mut receipt.levels[1].requests;
    fail(&mut requests[20], FailureClass::Timeout);
    fail(&mut requests[30], FailureClass::Cancelled);
    requests[31].retries = 2;
    let report = of(receipt);
    let said = finding(&report, "1 of 59 requests failed at 2 users (1 by timeout)");
    assert!(said.is_some_and(|finding| finding.tone == Tone::Bad));
    let table = table(&report, "load_failures", "failures");
    assert_eq!(["rate", "retries"].map(|id| number(table, 1, id)), [Some(1.0 / 59.0), Some(2.0)]);
    let rate = cell(table, 1, "rate").quantity().expect("a rate");
    let (low, high) = rate.interval.expect("its interval");
    assert!(low > 0.0 && low < rate.value && rate.value < high && high < 0.12, "{rate:?}");
    // The other user was answered meanwhile.
    assert_eq!(cell(table, 1, "down").shown(), "never");
    assert_eq!(number(table, 1, "uptime"), Some(1.0));
}

#[test]
fn limits_have_goodput_and_levels_that_meet_them() {
    let mut receipt = even();
    receipt.limits = ["ttft_p50=150ms", "itl_p50=10ms", "ttft=150ms"].map(|text| text.parse().expect("a limit")).into();
    let report = of(receipt);
    let met = table(&report, "load_limits", "met");
    assert_eq!(cell(met, 0, "met").shown(), "missed", "gaps are 20 ms");
    let goodput = table(&report, "load_limits", "goodput");
    assert_eq!(["good", "all", "share"].map(|id| number(goodput, 1, id)), [Some(58.0), Some(58.0), Some(1.0)]);
}

#[test]
fn an_open_loop_is_told_by_its_rate() {
    let mut receipt = even();
    for (level, requests_per_s) in receipt.levels.iter_mut().zip([2.5, 5.0]) {
        level.arrivals = Arrivals::Open { requests_per_s, spacing: Spacing::Constant };
    }
    let report = of(receipt);
    let table = table(&report, "load_users", "ttft");
    assert_eq!(cell(table, 0, "rate").shown(), "2.5 requests/s");
    let chart = report.charts().find(|chart| chart.id == "load-ttft").expect("a picture");
    assert_eq!(chart.x.label, "rate");
}

#[test]
fn what_requests_cost_by_the_servers_own_counts() {
    let mut receipt = even();
    assert!(of(receipt.clone()).section("load_cost").is_none(), "no price, no cost");
    receipt.targets = vec![server("", Some(Price { input_per_million: 1.0, output_per_million: 10.0 }))];
    let report = of(receipt.clone());
    let cost = table(&report, "load_cost", "cost");
    // 20 tokens in for 1, 4 out for 10 a million.
    assert_eq!(["input_tokens", "output_tokens"].map(|id| number(cost, 0, id)), [Some(20.0), Some(4.0)]);
    assert_eq!(number(cost, 0, "million"), Some(15.0));
    assert_eq!(cell(cost, 0, "thousand").shown(), "0.0600");
    receipt.levels[0].requests[9].input_tokens = None;
    assert!(cell(table(&of(receipt), "load_cost", "cost"), 0, "thousand").why().is_some(), "no cost without counts");
}

#[test]
fn a_run_that_cannot_be_used_says_so_first() {
    let mut receipt = even();
    assert_eq!(of(receipt.clone()).headline, None);
    receipt.invalid.push("why".into());
    let report = of(receipt.clone());
    let headline = report.headline.as_ref().expect("a headline");
    assert_eq!((headline.outcome, headline.exit_code), (Outcome::Invalid, 3));
    receipt.partial = true;
    assert_eq!(of(receipt.clone()).headline.map(|headline| headline.outcome), Some(Outcome::Invalid));
    receipt.invalid.clear();
    assert_eq!(of(receipt).headline.map(|headline| headline.outcome), Some(Outcome::Partial));
}
