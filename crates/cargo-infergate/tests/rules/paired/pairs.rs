//! How many pairs a block takes.

use std::cell::Cell;
use std::convert::Infallible;

use cargo_infergate::paired::pairs::{Pairs, most_ns};
use cargo_infergate::paired::planning::{decide, first_pairs, starts_ns};
use cargo_infergate::paired::{PairedRequest, Program};
use infergate_core::case::Case;
use infergate_core::clock::VirtualClock;
use infergate_core::engine::LoadRequest;
use infergate_receipts::{BlockCase, Output, PairedCase};

/// Pairs of 2 x 10 ms whose ratios jump by 10 %: more of them would help.
const SAMPLE_NS: u64 = 10_000_000;

fn planned(id: Case) -> PairedCase {
    let output = Output {
        sha256: String::new(),
        ids: Vec::new(),
        top2_margins: Vec::new(),
        fingerprint: None,
        prompt_sha256: None,
    };
    PairedCase {
        id,
        threshold: 1.02,
        widest: 1.05,
        pairs: 4,
        iterations_per_sample: 1,
        warm_up: false,
        one_core: false,
        base_output: output.clone(),
        head_output: output,
        timed: true,
        expected_std: None,
        mean: None,
        throughput: None,
        load: None,
    }
}

fn next(cost: Option<f64>) -> usize {
    next_of(cost, 1.0)
}

fn next_of(cost: Option<f64>, share: f64) -> usize {
    let id: Case = "decode/p128".parse().expect("a case");
    let base_ns: Vec<u64> = (0..20).map(|at| SAMPLE_NS + at % 2 * SAMPLE_NS / 10).collect();
    let mut pairs = Pairs::new(share);
    if let Some(cost) = cost {
        pairs.cost(id, cost);
    }
    pairs.note(&BlockCase::new(id, base_ns, vec![SAMPLE_NS; 20]));
    pairs.next(&[planned(id)], &[id])[&id]
}

/// Twelve pairs a block, as of any case of 60 ms, have none of such stalls in six blocks in 23 of 100 gates (0.98^72), which pass then.
#[test]
fn a_step_is_measured_so_often_that_six_blocks_have_one_of_fifty_stalls() {
    let request = PairedRequest::new(
        Program::new("base".into(), None, None),
        Program::new("head".into(), None, None),
        LoadRequest::default(),
    );
    let pairs = |id: &str, sample_ns: u64, stepwise: bool, cost: f64| {
        let mut plan = planned(id.parse().expect("a case"));
        let seen = BlockCase::new(plan.id, vec![sample_ns; 16], vec![sample_ns; 16]);
        decide(&mut plan, &seen, cost, stepwise, 5, &request);
        plan.pairs
    };
    assert_eq!(pairs("decode/p128", 60_000_000, true, 1.0), 32);
    assert_eq!(pairs("decode/p128", 5_000_000, true, 1.0), 48);
    assert_eq!(pairs("decode/p128", 500_000_000, true, 1.0), 6, "as many as fit");
    assert_eq!(pairs("prefill/p128", 60_000_000, true, 1.0), 12);
    assert!(pairs("decode/p128", 60_000_000, false, 20.0) < 32, "of a server each costs a request");
}

#[test]
fn pairs_that_cost_more_than_is_measured_of_them_are_fewer() {
    let cheap = next(None);
    assert!(cheap > 40, "noisy pairs of 20 ms are worth taking more of: {cheap}");
    assert_eq!(next(Some(1.0)), cheap);
    // A gap between tokens of a server costs a whole request.
    let dear = next(Some(100.0));
    let most = (most_ns(1, 1.0) / (100.0 * 2.0 * SAMPLE_NS as f64)) as usize + 2;
    assert!(dear < cheap && dear <= most.max(4), "{dear} pairs, at most {most} fit a block");
}

/// A block of each took 25 s where nine bench targets were gated one after the other.
#[test]
fn bench_targets_of_one_gate_share_the_time_of_a_block() {
    let (alone, one_of_many) = (next_of(None, 1.0), next_of(None, 0.01));
    let most = (most_ns(1, 0.01) / (2.0 * SAMPLE_NS as f64)) as usize + 2;
    assert!(one_of_many < alone && one_of_many <= most, "{one_of_many} of {alone} pairs, at most {most} fit its share");
    assert_eq!(most_ns(30, 1.0), most_ns(3, 0.1));
}

#[test]
fn what_a_pair_costs_stays_known_when_another_gate_begins() {
    let id: Case = "decode/p128".parse().expect("a case");
    let mut pairs = Pairs::new(1.0);
    pairs.cost(id, 100.0);
    let block =
        BlockCase::new(id, (0..20).map(|at| SAMPLE_NS + at % 2 * SAMPLE_NS / 10).collect(), vec![SAMPLE_NS; 20]);
    pairs.note(&block);
    let before = pairs.next(&[planned(id)], &[id])[&id];
    pairs.forget_blocks();
    assert_eq!(pairs.next(&[planned(id)], &[id])[&id], 4, "as planned, since nothing was seen");
    pairs.note(&block);
    assert_eq!(pairs.next(&[planned(id)], &[id])[&id], before);
}

/// A budget of 60 s once held 7 blocks where a slow case takes 10, because noisy pairs got 5 s of each.
#[test]
fn a_block_that_a_budget_was_planned_with_grows_no_longer_than_it() {
    let id: Case = "decode/p128".parse().expect("a case");
    let pair_ns = 2.0 * SAMPLE_NS as f64;
    for (room_ns, most) in [(0.0, 2), (3.0 * pair_ns, 4), (10.0 * pair_ns, 10), (1_000.0 * pair_ns, 1_000)] {
        let (mut pairs, mut cases) = (Pairs::new(1.0), [PairedCase { pairs: 40, ..planned(id) }]);
        pairs.plan(id, pair_ns, 0.1);
        pairs.fit(&mut cases, room_ns);
        assert!(
            (2..=most.max(2)).contains(&cases[0].pairs) && cases[0].pairs.is_multiple_of(2),
            "{room_ns}: {}",
            cases[0].pairs
        );
        let base_ns: Vec<u64> = (0..20).map(|at| SAMPLE_NS + at % 2 * SAMPLE_NS / 10).collect();
        pairs.note(&BlockCase::new(id, base_ns, vec![SAMPLE_NS; 20]));
        let next = pairs.next(&cases, &[id])[&id];
        assert!(next >= cases[0].pairs && next <= most.max(cases[0].pairs), "{room_ns}: {next} pairs");
    }
}

/// What the pilot asks `take` for, of an engine whose step takes 10 ms and that reads its prompt, 320 ms, before every sixteenth one.
fn cost_of_rereading(id: &str) -> (f64, usize) {
    let (clock, steps) = (VirtualClock::default(), Cell::new(0_u64));
    let measure = |pairs: usize| -> Result<BlockCase, Infallible> {
        for _ in 0..pairs {
            let reads = if steps.get() % 16 == 0 { 32 * SAMPLE_NS } else { 0 };
            steps.set(steps.get() + 1);
            clock.advance_ns(2 * (reads + SAMPLE_NS));
        }
        let id: Case = id.parse().expect("a case");
        Ok(BlockCase::new(id, vec![SAMPLE_NS; pairs], vec![SAMPLE_NS; pairs]))
    };
    let plan = planned(id.parse().expect("a case"));
    let (seen, cost) = first_pairs(&plan, true, 3e9, &clock, measure).expect("measured");
    (cost, seen.base_ns.len())
}

#[test]
fn a_prompt_that_is_read_again_between_steps_is_a_part_of_what_a_pair_costs() {
    let (cost, pairs) = cost_of_rereading("decode/p128");
    assert!((2.5..3.5).contains(&cost) && pairs > 16, "{cost} of {pairs} pairs");
    assert_eq!(cost_of_rereading("generate/p128-o64").0, 1.0, "its prompt is timed");
}

#[test]
fn a_slow_first_start_is_tried_once_more_where_a_block_has_no_room_for_it() {
    const S: u64 = 1_000_000_000;
    let never = || -> Result<u64, Infallible> { panic!("it fits") };
    assert_eq!(starts_ns(180 * S, None, never), Ok(180 * S), "without a budget it is only an estimate");
    assert_eq!(starts_ns(2 * S, Some(30e9), never), Ok(2 * S));
    assert_eq!(starts_ns(180 * S, Some(30e9), || Ok::<_, Infallible>(4 * S)), Ok(4 * S));
    assert_eq!(
        starts_ns(20 * S, Some(30e9), || Ok::<_, Infallible>(21 * S)),
        Ok(20 * S),
        "it is no faster the second time"
    );
}
