//! How many pairs a block takes.

use std::cell::Cell;
use std::convert::Infallible;

use cargo_infergate::paired::pairs::{PairPlan, first_pairs, most_ns};
use infergate_core::case::Case;
use infergate_judge::paired::Limits;
use infergate_receipts::{BlockCase, PairedCase};

use crate::fake::VirtualClock;
use crate::gate::support::measured;

/// Pairs of 2 x 10 ms whose ratios jump by 10 %: more of them would help.
const SAMPLE_NS: u64 = 10_000_000;

fn planned(id: Case) -> PairedCase {
    PairedCase { id, pairs: 4, ..measured("decode/p128", 1, &[]).cases.remove(0) }
}

fn next(cost: Option<f64>) -> usize {
    next_of(cost, 1.0)
}

/// Of a case of which the pilot saw pairs of 2 x 10 ms.
fn piloted(share: f64, cost: f64) -> (PairPlan, PairedCase) {
    let (mut pairs, mut plan) = (PairPlan::new(share), planned("decode/p128".parse().expect("a case")));
    pairs.plan(&mut plan, &noisy(), cost, true, 1, &Limits::default());
    (pairs, plan)
}

/// Twenty pairs, whose ratios jump by 10 %.
fn noisy() -> BlockCase {
    let base_ns = (0..20).map(|at| SAMPLE_NS + at % 2 * SAMPLE_NS / 10).collect();
    BlockCase::new("decode/p128".parse().expect("a case"), base_ns, vec![SAMPLE_NS; 20])
}

fn next_of(cost: Option<f64>, share: f64) -> usize {
    let (mut pairs, plan) = piloted(share, cost.unwrap_or(1.0));
    pairs.note(&noisy());
    pairs.in_next_block(&[PairedCase { pairs: 4, ..plan.clone() }], &[plan.id])[&plan.id]
}

/// Twelve pairs a block, as of any case of 60 ms, have none of such stalls in six blocks in 23 of 100 gates (0.98^72), which pass then.
#[test]
fn a_step_is_measured_so_often_that_six_blocks_have_one_of_fifty_stalls() {
    let pairs = |id: &str, sample_ns: u64, stepwise: bool, cost: f64| {
        let mut plan = planned(id.parse().expect("a case"));
        let seen = BlockCase::new(plan.id, vec![sample_ns; 16], vec![sample_ns; 16]);
        PairPlan::new(1.0).plan(&mut plan, &seen, cost, stepwise, 5, &Limits::default());
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
    let (mut pairs, plan) = piloted(1.0, 100.0);
    let plan = PairedCase { pairs: 4, ..plan };
    let next = |pairs: &PairPlan| pairs.in_next_block(std::slice::from_ref(&plan), &[plan.id])[&plan.id];
    pairs.note(&noisy());
    let before = next(&pairs);
    pairs.forget_blocks();
    assert_eq!(next(&pairs), 4, "as planned, since nothing was seen");
    pairs.note(&noisy());
    assert_eq!(next(&pairs), before);
}

/// A budget of 60 s once held 7 blocks where a slow case takes 10, because noisy pairs got 5 s of each.
#[test]
fn a_block_that_a_budget_was_planned_with_grows_no_longer_than_it() {
    let pair_ns = 2.0 * SAMPLE_NS as f64;
    for (room_ns, most) in [(0.0, 2), (3.0 * pair_ns, 4), (10.0 * pair_ns, 10), (1_000.0 * pair_ns, 1_000)] {
        let (mut pairs, plan) = piloted(1.0, 1.0);
        let mut cases = [PairedCase { pairs: 40, ..plan.clone() }];
        pairs.reduce_to(&mut cases, room_ns, &Limits::default());
        assert!(
            (2..=most.max(2)).contains(&cases[0].pairs) && cases[0].pairs.is_multiple_of(2),
            "{room_ns}: {}",
            cases[0].pairs
        );
        pairs.note(&noisy());
        let next = pairs.in_next_block(&cases, &[plan.id])[&plan.id];
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
