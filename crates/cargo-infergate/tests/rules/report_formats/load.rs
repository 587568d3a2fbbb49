//! What a load receipt says in a report, on runs whose times are known.

use cargo_infergate::receipt::{LoadReceipt, Outcome, Price};
use cargo_infergate::report::export::chosen;
use cargo_infergate::report::model::{Block, Cell, Finding, Report, Table, Tone};
use cargo_infergate::report::svg;
use cargo_infergate::report::topics::report;
use infergate_core::load::{Arrivals, FailureClass, Spacing};

use crate::report_formats::runs::{self, Answers, MS, fail, level, receipt, server};
use crate::report_formats::support::{all, load};
use cargo_infergate::receipt::Scenario;

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
pub fn findings<'a>(report: &'a Report, section: &str) -> Vec<&'a Finding> {
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

#[test]
fn percentiles_by_the_number_of_users() {
    let report = of(even());
    let quartiles = [("ttft", 100e6), ("itl", 20e6), ("e2e", 160e6), ("output_throughput", 25.0)];
    for (id, expected) in quartiles {
        let table = table(&report, "load_users", id);
        assert_eq!(table.rows.len(), 2);
        for (at, users) in [(0, 1.0), (1, 2.0)] {
            assert_eq!(number(table, at, "users"), Some(users));
            for column in ["p25", "p50", "p75"] {
                assert_eq!(number(table, at, column), Some(expected), "{id} {column}");
            }
        }
        assert!(table.columns.iter().all(|column| column.id != "p99"), "no column of dashes");
    }
    assert_eq!(number(table(&report, "load_users", "ttft"), 1, "requests"), Some(58.0));
    let said = "No P99 is printed: it takes 368 requests and no level has more than 58; measure longer for one.";
    assert_eq!(why_no_p99(&report).as_deref(), Some(said));
}

/// What the last table of the section says below itself.
fn why_no_p99(report: &Report) -> Option<String> {
    table(report, "load_users", "output_throughput").note.clone()
}

#[test]
fn a_wait_for_the_first_token_has_a_class() {
    for (ttft_ms, feels) in [(200, "at once"), (300, "nearly at once"), (301, "waited for")] {
        let answers = |_| Answers::new(ttft_ms, 20, 4);
        let scenario = Scenario::plain("chatbot", 20, 4);
        let report = of(receipt(vec![server("", None)], vec![scenario], vec![level(0, 1, 30, answers)]));
        assert_eq!(cell(table(&report, "load_users", "ttft"), 0, "feels").shown(), feels);
        assert!(table(&report, "load_users", "e2e").columns.iter().all(|column| column.id != "feels"));
    }
}

/// 368 requests have a P99; the level beside them says why it has none.
#[test]
fn a_p99_stands_where_a_level_has_requests_enough() {
    let mut receipt = even();
    receipt.levels[1] = level(0, 2, 200, |_| Answers::new(100, 20, 4));
    let report = of(receipt);
    for (section, id) in [("load_users", "itl"), ("load_itl", "levels")] {
        let table = table(&report, section, id);
        assert_eq!(number(table, 1, "p99"), Some(20e6));
        let why = cell(table, 0, "p99").why().expect("a reason");
        assert!(why.contains("takes 368 requests, there are 29"), "{why}");
    }
    assert_eq!(why_no_p99(&report), None);
}

#[test]
fn scaling_is_against_one_user_alone() {
    let report = of(even());
    let table = table(&report, "load_scaling", "levels");
    let row = |at| ["system", "ideal", "efficiency"].map(|id| number(table, at, id));
    assert_eq!([row(0), row(1)], [[Some(25.0), Some(25.0), Some(1.0)], [Some(50.0), Some(50.0), Some(1.0)]]);
    let mut receipt = even();
    receipt.levels.remove(0);
    assert!(of(receipt).section("load_scaling").is_none(), "nobody was alone");
}

#[test]
fn a_stream_has_a_class_and_its_gaps_have_shares() {
    // A gap of 10, of 30 and of 80 ms in turn.
    let mut receipt = even();
    for request in receipt.levels.iter_mut().flat_map(|level| &mut level.requests) {
        let start = request.scheduled_ns;
        request.chunk_ns = [20, 30, 60, 140].map(|ms| start + ms * MS).into();
    }
    let report = of(receipt);
    let table = table(&report, "load_itl", "levels");
    assert_eq!(["mean", "p50"].map(|id| number(table, 0, id)), [Some(40e6), Some(30e6)]);
    assert_eq!(cell(table, 0, "feels").shown(), "acceptable");
    assert_eq!(["instant", "acceptable", "sluggish"].map(|id| number(table, 0, id)), [Some(1.0 / 3.0); 3]);
}

/// A sentence of these sections says each figure that it rests on.
#[test]
fn sentences_say_their_figures() {
    let report = of(runs::scenarios());
    for begins in [
        "The middle decode speed of a user is from",
        "The middle gap is from",
        "At 4 users scaling efficiency is from",
        "The middle decode speed of a user is at most",
        "The middle TTFT is from",
    ] {
        let found = finding(&report, begins).unwrap_or_else(|| panic!("{begins}"));
        assert!(found.rests_on.len() >= 2, "{begins}");
        for (name, quantity) in &found.rests_on {
            assert!(found.said.contains(&quantity.shown()), "{name} {quantity:?} in {}", found.said);
        }
        assert!(found.figures().is_empty(), "nothing is said twice");
    }
    let said = &finding(&report, "The middle TTFT is").expect("a finding").said;
    assert_eq!(said, "The middle TTFT is from 102 ms (chatbot, 1 user) to 1.00 s (agent, 4 users)");
}

/// Whatever the sections find, five of it stand before everything else, bad news first, and none stands twice.
#[test]
fn findings_come_first_and_once() {
    let report = of(runs::scenarios());
    let first = report.sections.first().expect("sections");
    assert_eq!(first.id, "findings");
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let found = blocks.filter_map(|block| if let Block::Findings(found) = block { Some(found) } else { None });
    let all: Vec<&str> = found.clone().flatten().map(|finding| finding.said.as_str()).collect();
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), all.len(), "{all:?}");
    let top: Vec<Tone> = found.clone().next().expect("the first ones").iter().map(|finding| finding.tone).collect();
    assert_eq!(top.len(), 5);
    assert!(top.is_sorted_by_key(|tone| *tone != Tone::Warn), "{top:?}");
}

/// The title is a sentence, who was measured a line below it.
#[test]
fn a_title_says_what_came_out() {
    let report = of(even());
    assert_eq!(
        report.title,
        "At 2 users the first token comes after 100 ms, and all together get 2.0 times the output of one"
    );
    assert_eq!(report.subject, "model on http://127.0.0.1:8000/v1/chat/completions under load");
    let report = of(runs::targets());
    assert!(report.title.starts_with("2 users: near is faster up to 9 tokens of answer"), "{}", report.title);
}

#[test]
fn one_scenario_has_no_range_and_one_level_no_picture_over_users() {
    let report = of(even());
    assert!(report.section("load_decode_range").is_none() && report.section("load_ttft_range").is_none());
    let mut receipt = even();
    receipt.levels.pop();
    let report = of(receipt);
    let ids: Vec<&str> = report.charts().map(|chart| chart.id.as_str()).collect();
    assert_eq!(ids, ["load-stability"]);
}

#[test]
fn pictures_label_the_loads_that_ran_and_the_zones() {
    let report = of(runs::scenarios());
    let picture = |id: &str| svg::file(report.charts().find(|chart| chart.id == id).unwrap_or_else(|| panic!("{id}")));
    for id in ["load-e2e", "load-decode-speed", "load-itl", "load-ttft", "load-output-throughput"] {
        for users in [">1</text>", ">2</text>", ">4</text>", ">users, log scale</text>"] {
            assert!(picture(id).contains(users), "{id}: {users}");
        }
        assert!(!picture(id).contains("NaN"), "{id}");
    }
    for zone in ["instant, under 20 ms", "acceptable, 20 to 70 ms", "sluggish, above 70 ms"] {
        assert_eq!(picture("load-itl").matches(zone).count(), 1, "{zone}");
    }
    assert!(picture("load-decode-speed").contains("reading speed, 4 to 7 tokens/s"));
    assert!(picture("load-ttft").contains("ig-area"), "the band from P25 to P75");
    let of_one = of(even());
    assert!(
        of_one.charts().any(|chart| chart.id == "load-all") && !report.charts().any(|chart| chart.id == "load-all")
    );
}

/// Every axis of every picture says what it shows.
#[test]
fn axes_have_labels() {
    for (name, inputs) in all() {
        for chart in cargo_infergate::report::topics::report(&inputs).charts() {
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
    let said = &finding(&report, "Between quarters").expect("a finding").said;
    assert!(said.contains("TTFT of 1 user changes most, by +100 %"), "{said}");
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
    let table = table(&report, "load_failures", "failures");
    assert_eq!(["ended", "failed", "retries"].map(|id| number(table, 1, id)), [Some(59.0), Some(1.0), Some(2.0)]);
    let rate = cell(table, 1, "rate").quantity().expect("a rate");
    let (low, high) = rate.interval.expect("its interval");
    assert!(low > 0.0 && low < rate.value && rate.value < high && high < 0.12, "{rate:?}");
    assert_eq!(cell(table, 1, "classes").shown(), "1 by timeout");
    // The other user was answered meanwhile.
    assert_eq!(cell(table, 1, "down").shown(), "never");
    assert_eq!(["status_429", "uptime"].map(|id| number(table, 1, id)), [Some(0.0), Some(1.0)]);
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
fn what_is_not_known_says_why() {
    let mut receipt = even();
    // Nobody sends more than the warm-up.
    receipt.levels[1].warm_up_requests = 60;
    for request in &mut receipt.levels[0].requests {
        request.chunk_ns.truncate(1);
        request.output_tokens = Some(1);
    }
    let report = of(receipt);
    let why = |section: &str, id: &str, at, column: &str| cell(table(&report, section, id), at, column).why();
    let window =
        Some("no request ran at full load to its end; give a longer --duration, or more --requests".to_owned());
    assert_eq!(why("load_users", "ttft", 1, "p50"), window);
    assert_eq!(why("load_levels", "levels", 1, "system"), window);
    assert_eq!(why("load_users", "itl", 0, "p50").as_deref(), Some("not defined here"), "one token has no gap");
    assert!(finding(&report, "The middle decode speed").is_none(), "no sentence without a figure");
}

#[test]
fn tokens_that_no_server_counted_are_said_to_be_so() {
    assert!(finding(&of(even()), "No usable count").is_none());
    let mut receipt = even();
    let requests = receipt.levels.iter_mut().flat_map(|level| &mut level.requests);
    requests.for_each(|request| request.output_tokens = None);
    let said =
        |receipt: &LoadReceipt| finding(&of(receipt.clone()), "No usable count").expect("a finding").said.clone();
    assert!(
        said(&receipt).contains("as pieces of the stream, and a piece can hold several tokens, or a part of one"),
        "{}",
        said(&receipt)
    );
    let requests = receipt.levels.iter_mut().flat_map(|level| &mut level.requests);
    requests.for_each(|request| request.text_tokens = Some(7));
    assert!(said(&receipt).contains("by a tokenizer"), "{}", said(&receipt));
    // 6 gaps of 10 ms in place of 3 of 20.
    let report = of(receipt);
    assert_eq!(number(table(&report, "load_levels", "levels"), 0, "decode_speed"), Some(100.0));
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
    assert!(report.section("load_scaling").is_none());
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
    assert_eq!(["request", "million"].map(|id| number(cost, 0, id)), [Some(60e-6), Some(15.0)]);
    assert_eq!(cell(cost, 0, "request").shown(), "0.0000600");
    receipt.levels[0].requests[9].input_tokens = None;
    let why = cell(table(&of(receipt), "load_cost", "cost"), 0, "request").why();
    assert_eq!(why.as_deref(), Some("the server sends no token counts"));
}

#[test]
fn a_run_that_cannot_be_used_says_so_first() {
    let mut receipt = even();
    assert_eq!(of(receipt.clone()).headline, None);
    receipt.invalid.push("why\u{1b}[2J".into());
    let report = of(receipt.clone());
    let headline = report.headline.as_ref().expect("a headline");
    assert_eq!((headline.outcome, headline.exit_code), (Outcome::Invalid, 3));
    assert!(!headline.said.contains('\u{1b}'));
    receipt.partial = true;
    assert_eq!(of(receipt.clone()).headline.map(|headline| headline.outcome), Some(Outcome::Invalid));
    receipt.invalid.clear();
    assert_eq!(of(receipt).headline.map(|headline| headline.outcome), Some(Outcome::Partial));
}

#[test]
fn formats_that_cannot_show_it_say_so_in_words() {
    let inputs = load(even());
    let error =
        |name: &str| chosen(&[name.to_owned()], &inputs).err().map(|error| error.to_string()).unwrap_or_default();
    for name in ["comment", "junit", "annotations"] {
        assert_eq!(
            error(name),
            format!(
                "--format {name}: it needs a verdict, and a load receipt has none; take md, html, json, csv, svg or png"
            )
        );
    }
    assert!(error("llama-bench").contains("a load receipt has none; take bencher"), "{}", error("llama-bench"));
    for name in ["bencher", "github-benchmark", "openmetrics"] {
        assert_eq!(error(name), "");
    }
    let usual: Vec<&str> = chosen(&[], &inputs).expect("the usual ones").iter().map(|exporter| exporter.name).collect();
    assert_eq!(usual, ["md", "html", "json", "csv", "svg"]);
}
