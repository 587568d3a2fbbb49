//! Two servers under load: what the gate makes of servers whose faults are known.

use std::collections::BTreeMap;

use cargo_infergate::paired::load_window::{answers, bytes_per_token, window};
use infergate_core::case::{BenchName, Case};
use infergate_core::load::{FailureClass, REPEATED_PROMPTS, WindowPlan};
use infergate_core::sha256::{self, words_of_hex};
use infergate_judge::paired::{Policy, judge, open_cases, outcomes, series};
use infergate_receipts::window::{METRICS, case_name};
use infergate_receipts::{
    Accept, BlockCase, BlockRecord, Evidence, LoadCase, Metric, Outcome, PairedCase, PairedReceipt, Side, Terms, UpTo,
    Verdict, VerdictRow, WindowAnswers, WindowRecord, WindowTimes,
};
use infergate_report::inputs::Inputs;
use infergate_report::verdict_file::verdict_file;

use crate::gate::support::measured;
use crate::gate::support::output;
use crate::paired::simulated_server::{SAID, Server};

const USERS: u32 = 16;
const S: u64 = 1_000_000_000;
const TIMES: WindowTimes =
    WindowTimes { ramp_ns: S / 2, from_ns: S * 3 / 4, to_ns: S * 43 / 4, stop_ns: S * 23 / 2, give_up_ns: S * 20 };

const PLAN: WindowPlan = WindowPlan {
    users: USERS,
    ramp_ns: TIMES.ramp_ns,
    length_ns: TIMES.stop_ns,
    give_up_ns: TIMES.give_up_ns,
    number: 0,
    repeats_each: 16,
};

fn load(metric: Metric) -> LoadCase {
    LoadCase { scenario: "chat".into(), users: USERS, metric, times: TIMES }
}

fn planned(metric: Metric, threshold: f64, expected_std: f64) -> PairedCase {
    let name = case_name("chat", USERS, metric).expect("a name");
    let said = output(Vec::new());
    PairedCase {
        id: Case::Bench(BenchName::new(&name).expect("a name")),
        threshold,
        widest: threshold,
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
    let mut block = BlockRecord { ran_first, base_idle: None, head_idle: None, cases: Vec::new(), windows: Vec::new() };
    // Both were started some seconds before.
    let mut since_ms = 5000.0 * random.f64();
    let order = [ran_first, other, other, ran_first];
    let seen = order.map(|side| {
        let server = servers[usize::from(side == Side::Head)];
        let records = server.serve(USERS, TIMES.ramp_ns, TIMES.stop_ns, since_ms, random);
        since_ms += records.iter().map(|record| record.ended_ns).max().unwrap_or(0) as f64 / 1e6;
        records
    });
    let of_base = order.iter().zip(&seen).filter(|(side, _)| **side == Side::Base);
    let bytes_per_token = bytes_per_token(of_base.flat_map(|(_, records)| records));
    let known = words_of_hex(&sha256::of(SAID)).expect("a hash").repeat(1 + REPEATED_PROMPTS as usize);
    for (at, side) in order.into_iter().enumerate() {
        let found = window(side, &load(Metric::SystemToken), &seen[at], bytes_per_token).expect("a full load");
        block.windows.push(WindowRecord { answers: answers(PLAN, &known, &seen[at], &seen[at ^ 1]), ..found });
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
    receipt.head.engine.name = "server".into();
    loop {
        let cases = open_cases(&receipt);
        if cases.is_empty() {
            break;
        }
        let cases: Vec<PairedCase> = receipt.cases.iter().filter(|case| cases.contains(&case.id)).cloned().collect();
        receipt.blocks.push(block(&cases, [Server::default(), head], &mut random));
    }
    receipt
}

/// The outcome of each number, in the order of [`METRICS`]. A whole verdict takes a second: it says what the run can show, too.
fn numbers(receipt: &PairedReceipt) -> Vec<Option<Outcome>> {
    let suite: Vec<_> =
        series(&receipt.cases, &receipt.blocks, receipt.out_of_time).into_iter().map(|(_, series)| series).collect();
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
    let verdict = judge(&gate(Server::default(), 0), &Policy::default());
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
    let verdict = judge(&gate(Server { newest_first: true, ..Server::default() }, 0), &Policy::default());
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::CounterRegressed, 1), "{:?}", verdict.rows);
    assert_eq!(failed(&verdict), ["load:chat/16 users"], "{:?}", verdict.rows);
}

#[test]
fn requests_that_fail_on_head_alone_are_called() {
    let receipt = gate(Server { refused_from: 200, ..Server::default() }, 1);
    assert!(receipt.blocks.len() <= 10, "{} blocks", receipt.blocks.len());
    let verdict = judge(&receipt, &Policy::default());
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
    let verdict = judge(&receipt, &Policy::default());
    assert!(failed(&verdict).contains(&"load:chat/16 users".into()), "{:?}", verdict.rows);
}

/// Of an answer the end is missing where it ran beside others: per token the server is no slower.
#[test]
fn answers_that_end_early_under_load_are_called() {
    let receipt = gate(Server { ends_early: true, ..Server::default() }, 1);
    let verdict = judge(&receipt, &Policy::default());
    let row = answer_row(&verdict, "answer_bytes");
    assert_eq!(row.outcome, Outcome::CounterRegressed, "{:?}", verdict.rows);
    assert!(receipt.blocks.len() <= 10, "{} blocks", receipt.blocks.len());
    // Blocks decided it, so that no size could say how far it is meant.
    let up_to = Some(UpTo::Percent(1.0));
    let (case, metric, reason) = (row.subject.clone(), "answer_bytes".to_owned(), "shorter answers".to_owned());
    let accept = vec![Accept { case, metric, up_to, reason }];
    let terms = Some(Terms { by_head: false, accept, accepted_before: Vec::new() });
    let declared = PairedReceipt { terms, ..receipt.clone() };
    let verdict = judge(&declared, &Policy::default());
    assert_eq!(answer_row(&verdict, "answer_bytes").outcome, Outcome::CounterRegressed, "{:?}", verdict.rows);
    let inputs = Inputs { paired: Some(declared), ..Inputs::new("cargo infergate") };
    assert_eq!(verdict_file(&verdict, &inputs).accept, None);
    // Another output that is allowed may be of another length.
    let mut allowed = receipt;
    allowed.cases.iter_mut().for_each(|case| case.head_output = output(vec![1]));
    let verdict = judge(&allowed, &Policy { allow_output_change: true, ..Policy::default() });
    let is_length =
        |row: &VerdictRow| matches!(&row.evidence, Evidence::Counter(counter) if counter.name == "answer_bytes");
    assert!(!verdict.rows.iter().any(is_length), "{:?}", verdict.rows);
}

#[test]
fn answers_that_are_others_under_load_are_called() {
    let receipt = gate(Server { garbles: 1.0, ..Server::default() }, 1);
    let verdict = judge(&receipt, &Policy::default());
    assert_eq!(answer_row(&verdict, "changed_answers").outcome, Outcome::CounterRegressed, "{:?}", verdict.rows);
    assert_eq!(answer_row(&verdict, "answer_bytes").outcome, Outcome::Pass, "{:?}", verdict.rows);
    // Where both vary nothing is said of either.
    let mut both = receipt;
    both.blocks.iter_mut().flat_map(|block| &mut block.windows).for_each(|window| window.answers.changed = 1);
    let verdict = judge(&both, &Policy::default());
    assert_eq!(answer_row(&verdict, "changed_answers").outcome, Outcome::Pass, "{:?}", verdict.rows);
}

fn answer_row<'a>(verdict: &'a Verdict, name: &str) -> &'a VerdictRow {
    let is_it = |row: &&VerdictRow| matches!(&row.evidence, Evidence::Counter(counter) if counter.name == name);
    verdict.rows.iter().find(is_it).expect("a row")
}

/// One failure of base in the first block, and some of head in each of the others: the gate goes on until it is called.
#[test]
fn one_failure_of_base_does_not_hide_those_of_head() {
    let mut receipt = gate(Server::default(), 0);
    receipt.blocks.truncate(6);
    let before = open_cases(&receipt).len();
    for (at, block) in receipt.blocks.iter_mut().enumerate() {
        let side = if at == 0 { Side::Base } else { Side::Head };
        let mut windows = block.windows.iter_mut().filter(|window| window.side == side);
        windows.next().expect("a window").failures.insert(FailureClass::Status5xx, if at == 0 { 1 } else { 3 });
    }
    assert_eq!((before, open_cases(&receipt).len()), (0, METRICS.len()));
    let blocks = |first| [first].into_iter().chain(std::iter::repeat((0, 3))).take(20).collect::<Vec<_>>();
    // In the eleventh head fails more often than chance explains.
    assert_eq!(called_after(&blocks((1, 0))), Some(10));
    // Where most of base failed at once, only the number of blocks says so.
    assert_eq!(called_after(&blocks((200, 0))), Some(14));
    let mut few = PairedReceipt { cases: Vec::new(), ..measured("decode/p8", 1, &[]) };
    few.blocks = blocks((200, 0))[..6].iter().map(|(base, head)| failing(*base, *head)).collect();
    let verdict = judge(&few, &Policy::default());
    assert_eq!(answer_row(&verdict, "failed_requests").outcome, Outcome::Advisory, "{:?}", verdict.rows);
}

/// A block in which so many of 400 requests fail on each side.
fn failing(base: u64, head: u64) -> BlockRecord {
    let of_side = |side, failed| WindowRecord {
        side,
        scenario: "chat".into(),
        users: USERS,
        length_ns: 10 * S,
        output_tokens: 1000,
        issued: 400,
        failures: BTreeMap::from([(FailureClass::Status5xx, failed)]),
        starved: 0,
        ttft_ns: Vec::new(),
        itl_p90_ns: None,
        longest_gap_ns: Vec::new(),
        answers: WindowAnswers::default(),
    };
    BlockRecord {
        ran_first: Side::Base,
        base_idle: None,
        head_idle: None,
        cases: Vec::new(),
        windows: vec![of_side(Side::Base, base), of_side(Side::Head, head)],
    }
}

/// After how many of the blocks head is called for requests that fail, asked after each.
fn called_after(blocks: &[(u64, u64)]) -> Option<usize> {
    let mut receipt = PairedReceipt { cases: Vec::new(), ..measured("decode/p8", 1, &[]) };
    blocks.iter().position(|(base, head)| {
        receipt.blocks.push(failing(*base, *head));
        let verdict = judge(&receipt, &Policy::default());
        verdict.rows.iter().any(|row| row.outcome == Outcome::CounterRegressed)
    })
}

/// Servers that do the same and fail now and then, alone or many at once: which share of gates of 20 blocks calls one worse, and what
/// the rule did that called each first failure.
///
/// `cargo test -p cargo-infergate --test rules under_load::servers -- --nocapture` prints it.
#[test]
fn servers_that_fail_alike_are_seldom_called() {
    const GATES: usize = 250;
    for at_once in [1, 20] {
        for share in [0.02, 0.1, 0.3, 0.8] {
            let mut random = fastrand::Rng::with_seed(3);
            let mut drawn = || if random.f64() < share { at_once } else { 0 };
            let (mut called, mut before) = (0, 0);
            for _ in 0..GATES {
                let blocks: Vec<(u64, u64)> = (0..20).map(|_| (drawn(), drawn())).collect();
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
    // In each block one side fails: the bet alone decides.
    let mut random = fastrand::Rng::with_seed(4);
    let mut coin = || if random.bool() { (5, 0) } else { (0, 5) };
    let called = (0..GATES).filter(|_| called_after(&std::array::from_fn::<_, 20, _>(|_| coin())).is_some()).count();
    println!("one side in each block: called in {:.1} % of gates", 100.0 * called as f64 / GATES as f64);
    assert!(called <= GATES / 100, "{called}");
}

/// Requests that fail in head alone, in each block, need as many blocks as the level takes; one block is advisory, however many fail in it.
#[test]
fn requests_that_fail_in_each_block_of_head_are_called() {
    assert_eq!(called_after(&[(0, 1); 12]), Some(8), "the ninth");
    assert_eq!(called_after(&[(0, 200), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]), None);
    assert_eq!(called_after(&[(1, 1); 12]), None);
    assert!(called_after(&[(2, 100); 12]).is_some_and(|block| block < 7), "both fail, and head far more");
}
