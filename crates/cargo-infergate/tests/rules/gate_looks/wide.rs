//! Benches whose builds differ by more than the limit: the limit that they get, and what it leaves of level and power.

use cargo_infergate::gate::paired::{MAX_BLOCKS, mean_test, outcomes, series};
use cargo_infergate::paired::layouts::draw;
use cargo_infergate::receipt::{BlockCase, BlockRecord, Outcome, PairedCase};
use infergate_core::case::{BenchName, Case};
use infergate_core::stats::normal;

use crate::gate::paired::measured;

const PAIRS: usize = 48;

/// A bench whose limit nobody asked for.
fn bench() -> PairedCase {
    let decode = measured("decode/p8", 1, &[]).cases[0].clone();
    let id = Case::Bench(BenchName::new("format/short").expect("a name"));
    let mean = Some(mean_test(None, decode.threshold, Some(0.02)));
    PairedCase { id, threshold_by_noise: true, expected_std: Some(0.01), mean, ..decode }
}

/// Blocks of 13 builds a side that differ by `tau`, whose pairs vary by `pairs` besides; head takes `slower` times as long.
fn blocks(tau: f64, pairs: f64, slower: f64, seed: u64) -> Vec<BlockRecord> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut side = |by: f64| (0..13).map(|_| by.ln() + tau / 2.0_f64.sqrt() * normal(&mut random)).collect::<Vec<_>>();
    let (base, head) = (side(1.0), side(slower));
    let block = |at| {
        let mut times = |build: f64| -> Vec<u64> {
            let of_pair = |_| ((14.5 + build + pairs / 2.0_f64.sqrt() * normal(&mut random)).exp()) as u64;
            (0..PAIRS).map(of_pair).collect()
        };
        let base_ns = times(base[draw(seed * 2, at, 13)]);
        let head_ns = times(head[draw(seed * 2 + 1, at, 13)]);
        let case = BlockCase::new(bench().id, base_ns, head_ns);
        BlockRecord { cases: vec![case], ..measured("decode/p8", 1, &[0.0]).blocks[0].clone() }
    };
    (0..MAX_BLOCKS).map(block).collect()
}

/// The machine's speed moves by so much from block to block.
fn drift(blocks: &mut [BlockRecord], by: f64, random: &mut fastrand::Rng) {
    for case in blocks.iter_mut().flat_map(|block| &mut block.cases) {
        let drift = (by * normal(random)).exp();
        case.base_ns.iter_mut().chain(&mut case.head_ns).for_each(|ns| *ns = (*ns as f64 * drift) as u64);
    }
}

/// The ratio that a case is judged by once these blocks are measured.
fn threshold_in(case: &PairedCase, blocks: &[BlockRecord]) -> f64 {
    series(std::slice::from_ref(case), blocks).remove(0).1.limit_after(blocks.len()).exp()
}

/// Of `suites` suites of five such benches: the share of benches that pass, and that of suites in which one is called slower.
fn judged(suites: u64, tau: f64, pairs: f64, slower: f64) -> (f64, f64) {
    let (mut passed, mut called) = (0, 0);
    for suite in 0..suites {
        let alone = |at: u64| {
            let blocks = blocks(tau, pairs, slower, suite * 5 + at);
            series(&[bench()], &blocks).remove(0).1
        };
        let found = outcomes(&(0..5).map(alone).collect::<Vec<_>>(), 0);
        passed += found.iter().flatten().filter(|outcome| outcome.exit_code() == 0).count();
        called += usize::from(found.contains(&Some(Outcome::Regressed)));
    }
    (passed as f64 / suites as f64 / 5.0, called as f64 / suites as f64)
}

#[test]
fn a_bench_that_varies_by_more_than_its_limit_passes_and_is_not_called() {
    println!(
        "| tau | pairs vary by | unchanged: benches that pass | suites called | 1.5 times as slow: suites called |"
    );
    println!("|---|---|---|---|---|");
    for (tau, pairs) in
        [(0.0, 0.03), (0.02, 0.03), (0.05, 0.03), (0.10, 0.03), (0.20, 0.03), (0.0, 0.1), (0.0, 0.2), (0.03, 0.1)]
    {
        let (passed, falsely) = judged(
            std::env::var("INFERGATE_SUITES").map_or(60, |count| count.parse().expect("a number of suites")),
            tau,
            pairs,
            1.0,
        );
        let (_, found) = judged(20, tau, pairs, 1.5);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let [tau_is, pairs_vary] = [tau, pairs].map(percent);
        println!("| {tau_is} | {pairs_vary} | {} | {} | {} |", percent(passed), percent(falsely), percent(found));
        assert!(passed >= 0.95, "tau {tau}, pairs {pairs}: {passed} of the benches pass");
        assert!(falsely <= 0.03, "tau {tau}, pairs {pairs}: {falsely} of the suites are called");
        assert!(found >= 0.95, "tau {tau}, pairs {pairs}: {found} of slow suites are called");
    }
}

/// Half of head's processes take 1.4 times as long, on a machine whose speed moves by 10 % from block to block.
#[test]
fn what_head_varies_by_does_not_widen_the_limit_it_is_held_to() {
    let judged = |seed| {
        let mut blocks = blocks(0.02, 0.03, 1.0, seed);
        let mut random = fastrand::Rng::with_seed(seed);
        for case in blocks.iter_mut().flat_map(|block| &mut block.cases).filter(|_| random.bool()) {
            case.head_ns.iter_mut().for_each(|ns| *ns = *ns * 14 / 10);
        }
        drift(&mut blocks, 0.1, &mut random);
        outcomes(&[series(&[bench()], &blocks).remove(0).1], 0)[0]
    };
    let called = (0..20).filter(|seed| judged(*seed) == Some(Outcome::Regressed)).count();
    assert!(called >= 17, "{called} of 20");
}

/// Seen with ahash's benches, whose limit stayed at 2 %: both sides moved together, by twice what they differed by.
#[test]
fn a_machine_whose_speed_moves_does_not_keep_a_limit_from_being_widened() {
    let judged = |seed| {
        let mut blocks = blocks(0.07, 0.03, 1.0, seed);
        drift(&mut blocks, 0.2, &mut fastrand::Rng::with_seed(seed));
        blocks.truncate(24);
        outcomes(&[series(&[bench()], &blocks).remove(0).1], 0)[0]
    };
    let passed = (0..100).filter(|seed| judged(*seed).is_some_and(|outcome| outcome.exit_code() == 0)).count();
    assert!(passed >= 97, "{passed} of 100");
}

/// 2 % of head's samples take six times as long, 10 % three times, a quarter twice.
#[test]
fn stalls_of_head_alone_do_not_widen_the_limit_of_its_mean() {
    for (share, times) in [(0.02, 6), (0.1, 3), (0.25, 2)] {
        let judged = |seed| {
            let mut blocks = blocks(0.0, 0.03, 1.0, seed);
            let mut random = fastrand::Rng::with_seed(seed);
            for case in blocks.iter_mut().flat_map(|block| &mut block.cases) {
                case.head_ns.iter_mut().filter(|_| random.f64() < share).for_each(|ns| *ns *= times);
            }
            outcomes(&[series(&[bench()], &blocks).remove(0).1], 0)[0]
        };
        let called = (0..20).filter(|seed| judged(*seed) == Some(Outcome::Regressed)).count();
        assert!(called >= 19, "{share} of samples {times} times as slow: {called} of 20");
    }
}

#[test]
fn a_limit_is_widened_only_for_benches_and_only_where_none_was_asked_for() {
    let widened =
        |case: &PairedCase, tau, pairs| threshold_in(case, &blocks(tau, pairs, 1.0, 3)) > case.threshold + 1e-9;
    let asked = PairedCase { threshold_by_noise: false, ..bench() };
    let decode = PairedCase { threshold_by_noise: true, ..measured("decode/p8", 1, &[]).cases[0].clone() };
    assert!(widened(&bench(), 0.10, 0.01));
    assert!(!widened(&bench(), 0.0, 0.01), "a quiet one keeps its limit");
    assert!(!widened(&asked, 0.10, 0.01), "a limit that was asked for stands");
    assert!(!widened(&decode, 0.10, 0.01), "an engine's cases are not widened");
    let wide = threshold_in(&bench(), &blocks(0.9, 0.01, 1.0, 3));
    assert!(wide <= 1.3 + 1e-9, "beyond 30 % a bench is unstable: {wide}");
    let few = &blocks(0.10, 0.01, 1.0, 3)[..7];
    assert!(threshold_in(&bench(), few) <= bench().threshold + 1e-9, "seven blocks do not tell");
}
