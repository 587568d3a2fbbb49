//! Servers that run already: one of each side is luck, several in turn are judged.

use std::collections::BTreeSet;

use cargo_infergate::paired::{PairedRequest, Program, run_seed};
use infergate_core::engine::LoadRequest;
use infergate_core::load::PLACES;
use infergate_judge::paired::{MAX_BLOCKS, Policy, judge, open_cases};
use infergate_judge::servers::LEAST_SERVERS;
use infergate_receipts::{Outcome, PairedReceipt, Reason, TimeEvidence, Verdict};

use crate::gate::support::{measured, note, row, time};

fn judged(servers: Option<usize>, slower: &[f64]) -> Verdict {
    let receipt = PairedReceipt { servers, ..measured("decode/p8", 10_000_000, slower) };
    judge(&receipt, &Policy::default())
}

#[test]
fn one_server_of_each_side_is_shown_and_not_judged() {
    let slower = [0.10; 12];
    assert_eq!(judged(None, &slower).exit_code, 1);
    let verdict = judged(Some(1), &slower);
    let found = row(&verdict, "decode/p8", "itl_ns");
    assert_eq!((found.outcome, verdict.exit_code), (Outcome::Advisory, 0), "{found:?}");
    assert_eq!(found.reasons, [Reason::FewServers { servers: 1, needed: LEAST_SERVERS }]);
    assert!(note(found).starts_with("1 server of each side: too few to tell noise from a change"), "{}", note(found));
    assert!(time(found).ratio.is_some_and(|ratio| ratio > 1.09), "shown: {found:?}");
    assert_eq!((time(found).threshold, time(found).interval, time(found).shown), (None, None, None));
    // Too noisy, or not finished: that fails no build either.
    let wild: Vec<f64> = (0..MAX_BLOCKS).map(|at| if at % 2 == 0 { -0.4 } else { 0.6 }).collect();
    assert_eq!((judged(None, &wild).exit_code, judged(Some(2), &wild).exit_code), (3, 0));
}

#[test]
fn servers_that_agree_are_judged_and_those_that_do_not_say_so() {
    let slow = judged(Some(4), &[0.10, 0.101, 0.099, 0.10].repeat(10));
    assert_eq!((slow.verdict, slow.exit_code), (Outcome::Regressed, 1));
    let same = judged(Some(4), &[0.001, -0.001, 0.0, 0.001].repeat(10));
    let found = row(&same, "decode/p8", "itl_ns");
    assert_eq!((found.outcome, same.exit_code), (Outcome::WithinLimit, 0));
    // One pair among four is slow by luck: the blocks say slower, the servers do not.
    let one = judged(Some(4), &[0.12, 0.03, 0.02, 0.03].repeat(10));
    let found = row(&one, "decode/p8", "itl_ns");
    assert_eq!((found.outcome, one.exit_code), (Outcome::Advisory, 0), "{found:?}");
    assert!(note(found).contains("4 pairs of servers differ by"), "{}", note(found));
    let ends = time(found).interval.expect("an interval of the pairs");
    assert!(ends.low < 1.0 && ends.high > 1.05, "{ends:?}");
    let TimeEvidence { base_ns: Some(base_ns), head_ns: Some(head_ns), ratio: Some(ratio), .. } = *time(found) else {
        panic!("no change: {found:?}")
    };
    assert!((head_ns / base_ns - ratio).abs() < 1e-9, "the change follows from the times beside it: {found:?}");
    // A changed output fails whatever servers there are.
    let mut changed = measured("decode/p8", 10_000_000, &[0.0; 12]);
    changed.servers = Some(1);
    changed.cases[0].head_output = crate::gate::support::output(vec![9]);
    assert_eq!(judge(&changed, &Policy::default()).verdict, Outcome::OutputChanged);
}

/// What a server keeps in a file, as answers to prompts, would else be asked for again in the next block and the next gate.
#[test]
fn each_block_of_each_gate_of_a_server_has_prompts_of_its_own() {
    let program = || Program::new("server".into());
    let seeds = |new_prompts, seed| {
        let load = LoadRequest { seed, ..LoadRequest::default() };
        let request = PairedRequest { new_prompts, ..PairedRequest::new(program(), program(), load) };
        // The memory phase, the pilot and three blocks.
        let blocks = [None, Some(0), Some(1), Some(2)].map(|block| request.load_in(block).seed);
        [request.load.seed].into_iter().chain(blocks).collect::<Vec<_>>()
    };
    let runs = [1, 2].map(run_seed);
    let all: BTreeSet<u64> = runs.into_iter().flat_map(|seed| seeds(true, seed)).collect();
    assert_eq!(all.len(), 10, "{all:?}");
    assert!(
        all.iter().all(|seed| runs.contains(&(seed & !PLACES))),
        "the prompts that are compared are those of a run"
    );
    assert_eq!(seeds(true, runs[0]), seeds(true, runs[0]), "of both sides the same");
    assert_eq!(seeds(false, 7), [7; 5]);
}

/// Requests that fail would else be judged of the pairs that times were settled by.
#[test]
fn each_pair_of_servers_is_asked_at_least_once() {
    let quiet = [0.001, -0.001, 0.0, 0.001, -0.001, 0.0, 0.001, -0.001, 0.0, 0.001, -0.001, 0.0];
    let is_open = |servers, blocks: usize| {
        let receipt = PairedReceipt { servers, ..measured("decode/p8", 10_000_000, &quiet[..blocks]) };
        !open_cases(&receipt).is_empty()
    };
    assert_eq!([8, 9, 10, 12].map(|blocks| is_open(Some(10), blocks)), [true, true, false, false]);
    assert_eq!([8, 10].map(|blocks| (is_open(Some(2), blocks), is_open(None, blocks))), [(false, false); 2]);
}
