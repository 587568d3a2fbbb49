//! Two servers under load: what a window says, and what the gate makes of servers whose faults are known.

use std::collections::BTreeMap;

use cargo_infergate::gate::paired::{PairedPolicy, judge, open, outcomes, series};
use cargo_infergate::paired::load_window::window;
use cargo_infergate::receipt::window::{METRICS, case_name, of_case_name};
use cargo_infergate::receipt::{
    BlockCase, BlockRecord, LoadCase, Metric, Outcome, PairedCase, PairedReceipt, Side, Verdict, WindowRecord,
    WindowTimes,
};
use infergate_core::case::{BenchName, Case};
use infergate_core::load::{Failure, FailureClass, RequestRecord};

use crate::gate::paired::measured;
use crate::gate::simulated_server::Server;
use crate::gate::support::output;

const USERS: u32 = 16;
const S: u64 = 1_000_000_000;
const TIMES: WindowTimes =
    WindowTimes { ramp_ns: S / 2, from_ns: S * 3 / 4, to_ns: S * 43 / 4, stop_ns: S * 23 / 2, give_up_ns: S * 20 };

fn load(metric: Metric) -> LoadCase {
    LoadCase { scenario: "chat".into(), users: USERS, metric, times: TIMES }
}

fn planned(metric: Metric, threshold: f64, expected_std: f64) -> PairedCase {
    let name = case_name("chat", USERS, metric).expect("a name");
    let said = output(Vec::new());
    PairedCase {
        id: Case::Bench(BenchName::new(&name).expect("a name")),
        threshold,
        pairs: 2,
        expected_std: Some(expected_std),
        base_output: said.clone(),
        head_output: said,
        load: Some(load(metric)),
        mean: None,
        ..measured("decode/p8", 1, &[]).cases[0].clone()
    }
}

/// A block as a gate measures it.
fn block(cases: &[PairedCase], servers: [Server; 2], random: &mut fastrand::Rng) -> BlockRecord {
    let ran_first = if random.bool() { Side::Base } else { Side::Head };
    let other = ran_first.other();
    let mut block = BlockRecord {
        started_first: other,
        ran_first,
        anchor_place: None,
        layouts: None,
        cases: Vec::new(),
        windows: Vec::new(),
    };
    // Both were started some seconds before.
    let mut since_ms = 5000.0 * random.f64();
    for side in [ran_first, other, other, ran_first] {
        let server = servers[usize::from(side == Side::Head)];
        let records = server.serve(USERS, TIMES.ramp_ns, TIMES.stop_ns, since_ms, random);
        since_ms += records.iter().map(|record| record.ended_ns).max().unwrap_or(0) as f64 / 1e6;
        let window = window(side, &load(Metric::SystemToken), &records).expect("a full load");
        block.windows.push(window);
    }
    for case in cases {
        let times_ns = |side| case.load.as_ref().and_then(|load| load.times_ns(side, &block.windows)).expect("numbers");
        block.cases.push(BlockCase::new(case.id, times_ns(Side::Base), times_ns(Side::Head)));
    }
    block
}

/// A whole gate: blocks until nothing is open any more.
fn gate(head: Server, seed: u64) -> PairedReceipt {
    let mut random = fastrand::Rng::with_seed(seed);
    let limits = [(1.05, 0.02), (1.10, 0.04), (1.10, 0.04), (1.5, 0.2)];
    let plan = METRICS.iter().zip(limits).map(|((metric, _), (limit, std))| planned(*metric, limit, std));
    let mut receipt = PairedReceipt { cases: plan.collect(), ..measured("decode/p8", 1, &[]) };
    loop {
        let cases = open(&receipt);
        if cases.is_empty() {
            break;
        }
        let cases: Vec<PairedCase> = receipt.cases.iter().filter(|case| cases.contains(&case.id)).cloned().collect();
        receipt.blocks.push(block(&cases, [Server::default(), head], &mut random));
    }
    receipt.validate().expect("a receipt that can be read again");
    receipt
}

/// The outcome of each number, in the order of [`METRICS`]. A whole verdict takes a second: it says what the run can show, too.
fn numbers(receipt: &PairedReceipt) -> Vec<Option<Outcome>> {
    let suite: Vec<_> = series(&receipt.cases, &receipt.blocks).into_iter().map(|(_, series)| series).collect();
    outcomes(&suite, 0)
}

/// The rows that fail.
fn failed(verdict: &Verdict) -> Vec<String> {
    let rows = verdict.rows.iter().filter(|row| row.outcome.exit_code() == 1);
    rows.map(|row| row.subject.to_string()).collect()
}

#[test]
fn equal_servers_pass() {
    for seed in 0..20 {
        let receipt = gate(Server::default(), seed);
        assert_eq!(numbers(&receipt), [Some(Outcome::WithinLimit); 4], "seed {seed}");
        assert!(receipt.blocks.len() <= 14, "seed {seed}: {} blocks", receipt.blocks.len());
    }
    let verdict = judge(&gate(Server::default(), 0), &PairedPolicy::default());
    assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.rows);
}

#[test]
fn a_batch_that_is_decoded_row_by_row_is_called() {
    for seed in 0..20 {
        // 12 rows of 1 ms: 60 % more.
        let receipt = gate(Server { row_ms: 1.0, ..Server::default() }, seed);
        assert_eq!(numbers(&receipt)[0], Some(Outcome::Regressed), "seed {seed}");
        assert!(receipt.blocks.len() <= 11, "seed {seed}: {} blocks", receipt.blocks.len());
    }
}

/// 500 ms of ten seconds: the P90 of the gaps does not see it, and the throughput only just.
#[test]
fn a_stall_each_ten_seconds_is_called() {
    for seed in 0..20 {
        let receipt = gate(Server { stall_ms: 500.0, ..Server::default() }, seed);
        let found = numbers(&receipt);
        assert!([found[0], found[3]].contains(&Some(Outcome::Regressed)), "seed {seed}: {found:?}");
        assert!(receipt.blocks.len() <= 10, "seed {seed}: {} blocks", receipt.blocks.len());
    }
}

/// Requests that started within a window are served sooner then. Those that waited all the time are what is wrong.
#[test]
fn a_queue_that_starves_its_oldest_is_called() {
    for seed in 0..20 {
        let receipt = gate(Server { newest_first: true, ..Server::default() }, seed);
        assert!(receipt.blocks.len() <= 10, "seed {seed}: {} blocks", receipt.blocks.len());
    }
    let verdict = judge(&gate(Server { newest_first: true, ..Server::default() }, 0), &PairedPolicy::default());
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::CounterRegressed, 1), "{:?}", verdict.rows);
    assert_eq!(failed(&verdict), ["load:chat/16 users"], "{:?}", verdict.rows);
}

#[test]
fn requests_that_fail_on_head_alone_are_called() {
    let receipt = gate(Server { refused_from: 200, ..Server::default() }, 1);
    assert!(receipt.blocks.len() <= 10, "{} blocks", receipt.blocks.len());
    let verdict = judge(&receipt, &PairedPolicy::default());
    assert_eq!(failed(&verdict), ["load:chat/16 users"], "{:?}", verdict.rows);
}

/// Some of the streams end in the middle, and nobody closes them.
#[test]
fn streams_that_hang_are_called() {
    let receipt = gate(Server { hangs_each: 100, ..Server::default() }, 1);
    assert!(receipt.blocks.len() <= 10, "{} blocks", receipt.blocks.len());
    let windows = receipt.blocks.iter().flat_map(|block| &block.windows);
    let (head, base): (Vec<_>, Vec<_>) = windows.partition(|window| window.side == Side::Head);
    assert!(head.iter().all(|window| window.failures[&FailureClass::Cancelled] > 0));
    assert!(base.iter().all(|window| window.failed() == 0 && window.starved == 0));
    let verdict = judge(&receipt, &PairedPolicy::default());
    assert!(failed(&verdict).contains(&"load:chat/16 users".into()), "{:?}", verdict.rows);
}

/// A block in which so many of 400 requests fail on each side.
fn failing(base: u64, head: u64) -> BlockRecord {
    let of_side = |side, failed| WindowRecord {
        side,
        scenario: "chat".into(),
        users: USERS,
        length_ns: 10 * S,
        output_tokens: 1000,
        in_flight: f64::from(USERS),
        issued: 400,
        failures: BTreeMap::from([(FailureClass::Status5xx, failed)]),
        starved: 0,
        unfinished: 0,
        ttft_ns: Vec::new(),
        gaps: 0,
        itl_p90_ns: None,
        longest_gap_ns: Vec::new(),
    };
    BlockRecord {
        started_first: Side::Base,
        ran_first: Side::Base,
        anchor_place: None,
        layouts: None,
        cases: Vec::new(),
        windows: vec![of_side(Side::Base, base), of_side(Side::Head, head)],
    }
}

/// After how many of the blocks head is called for requests that fail, asked after each.
fn called_after(blocks: &[(u64, u64)]) -> Option<usize> {
    let mut receipt = PairedReceipt { cases: Vec::new(), ..measured("decode/p8", 1, &[]) };
    blocks.iter().position(|(base, head)| {
        receipt.blocks.push(failing(*base, *head));
        let verdict = judge(&receipt, &PairedPolicy::default());
        verdict.rows.iter().any(|row| row.outcome == Outcome::CounterRegressed)
    })
}

/// Servers that do the same and fail now and then, alone or many at once: which share of gates of 12 blocks calls one worse, and what
/// the rule did that called each first failure.
///
/// `cargo test -p cargo-infergate --test rules gate::under_load::servers -- --nocapture` prints it.
#[test]
fn servers_that_fail_alike_are_seldom_called() {
    const GATES: usize = 1_000;
    for at_once in [1, 20] {
        for share in [0.02, 0.1, 0.3, 0.8] {
            let mut random = fastrand::Rng::with_seed(3);
            let mut drawn = || if random.f64() < share { at_once } else { 0 };
            let (mut called, mut before) = (0, 0);
            for _ in 0..GATES {
                let blocks: Vec<(u64, u64)> = (0..12).map(|_| (drawn(), drawn())).collect();
                called += usize::from(called_after(&blocks).is_some());
                let first = blocks.iter().find(|(base, head)| base + head > 0);
                before += usize::from(first.is_some_and(|(base, _)| *base == 0));
            }
            let percent = |gates: usize| 100.0 * gates as f64 / GATES as f64;
            println!(
                "{at_once} at once in {:.0} % of blocks: called in {:.1} % of gates, before in {:.1} %",
                100.0 * share,
                percent(called),
                percent(before)
            );
            assert!(called <= GATES / 100, "{at_once}, {share}: {called}");
        }
    }
}

/// Requests that fail in head alone, in each block, need as many blocks as the level takes; one block is advisory, however many fail in it.
#[test]
fn requests_that_fail_in_each_block_of_head_are_called() {
    assert_eq!(called_after(&[(0, 1); 12]), Some(7), "the eighth");
    assert_eq!(called_after(&[(0, 200), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]), None);
    assert_eq!(called_after(&[(1, 1); 12]), None);
    assert!(called_after(&[(2, 100); 12]).is_some_and(|block| block < 7), "both fail, and head far more");
}

fn record(user: u32, scheduled_ns: u64, chunk_ns: &[u64]) -> RequestRecord {
    RequestRecord {
        user,
        scheduled_ns,
        sent_ns: scheduled_ns,
        chunk_ns: chunk_ns.to_vec(),
        ended_ns: chunk_ns.last().copied().unwrap_or(scheduled_ns),
        output_tokens: Some(chunk_ns.len() as u64),
        ..RequestRecord::default()
    }
}

/// From 100 to 200: what came before and after does not count, what waited at the begin does.
#[test]
fn a_window_holds_what_ran_at_full_load() {
    let times = WindowTimes { ramp_ns: 10, from_ns: 100, to_ns: 200, stop_ns: 220, give_up_ns: 300 };
    let load = LoadCase { scenario: "chat".into(), users: 2, metric: Metric::SystemToken, times };
    let records = [
        // Its third gap begins within and ends behind.
        record(0, 0, &[50, 110, 190, 230]),
        // It waited at the begin.
        record(1, 80, &[120, 130]),
        // Its gap has lasted 50 when the window ends.
        record(1, 140, &[150, 210, 240]),
    ];
    let seen = window(Side::Head, &load, &records).expect("full from 0 to 230");
    assert_eq!((seen.output_tokens, seen.length_ns), (5, 100));
    assert_eq!(seen.value_ns(Metric::SystemToken), Some(20));
    assert_eq!(seen.ttft_ns, [40, 10]);
    assert_eq!((seen.gaps, &seen.longest_gap_ns[..]), (3, &[80, 50][..]));
    assert_eq!((seen.starved, seen.unfinished), (0, 1));
    assert!((seen.in_flight - 1.9).abs() < 1e-9, "{}", seen.in_flight);
    // A user who stopped at 130 leaves half a load.
    assert!(window(Side::Head, &load, &records[..2]).is_err());
    // One that got nothing is no number, and is counted.
    let silent = [records[0].clone(), record(1, 90, &[]), record(1, 205, &[240])];
    let mut silent = silent.to_vec();
    silent[1].ended_ns = 205;
    assert_eq!(window(Side::Head, &load, &silent).expect("full").starved, 1);
}

/// One that got a token before the window and none in it; one that hangs within; one that began behind it.
#[test]
fn a_stream_that_goes_no_further_starves_and_its_wait_is_a_gap() {
    let times = WindowTimes { ramp_ns: 10, from_ns: 100, to_ns: 200, stop_ns: 220, give_up_ns: 300 };
    let load = LoadCase { scenario: "chat".into(), users: 2, metric: Metric::LongestGap, times };
    let hung = |user, scheduled_ns, chunk_ns: &[u64]| RequestRecord {
        ended_ns: 300,
        failure: Some(Failure { class: FailureClass::Cancelled, status: None, detail: String::new() }),
        ..record(user, scheduled_ns, chunk_ns)
    };
    let records = [hung(0, 10, &[40, 90]), record(1, 20, &[110, 120]), hung(1, 120, &[130, 140]), hung(1, 210, &[])];
    let seen = window(Side::Head, &load, &records).expect("full");
    assert_eq!((seen.starved, seen.failures[&FailureClass::Cancelled]), (1, 2));
    assert_eq!(seen.longest_gap_ns, [110, 60]);
    assert_eq!((seen.gaps, seen.itl_p90_ns), (2, Some(10)), "an open gap is in no percentile");
    // A usual gap that the end cuts is shorter than what the user saw before.
    let usual = [record(0, 0, &[50, 110, 190, 230]), record(1, 10, &[120, 140, 150, 195, 205])];
    let seen = window(Side::Head, &load, &usual).expect("full");
    assert_eq!((seen.starved, seen.failed(), &seen.longest_gap_ns[..]), (0, 0, &[80, 45][..]));
}

#[test]
fn a_case_is_named_after_its_load() {
    for (metric, _) in METRICS {
        let name = case_name("a/b", 16, metric).expect("a name");
        assert_eq!(of_case_name(&name, 16), Some(("a/b", metric)));
        assert_eq!(of_case_name(&name, 6), None, "{name}");
    }
    assert_eq!(case_name("chat", 16, Metric::Time), None);
    assert_eq!(of_case_name("chat/ttft", 16), None);
}
