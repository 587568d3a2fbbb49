//! How many pairs a case takes of a block, and what noise is expected of it: by what the pilot saw, and by the time there is.

use std::time::Duration;

use super::PairedRequest;
use super::pairs::{AIM, CASE_OF_REQUESTS_NS, Pairs, most_ns, wanted};
use infergate_core::case::{Case, Phase};
use infergate_core::clock::Clock;
use infergate_core::stats::{log_ratio, median, median_error, robust_std, sample_std};
use infergate_judge::paired::{fewest_to_fail, mean_test, widest};
use infergate_receipts::{BlockCase, PairedCase, ShareRecord};

/// A case takes at most [`most_ns`] of a block, or so many pairs, and within that at least this long, or so many: a pilot can be lucky, and
/// beyond more blocks help more than more pairs. On decode blocks of 16 pairs varied by 1.9 %, of 48 by 1.1 to 1.3, of 60 to
/// 96 by .9 to 1.1.
const LEAST_BLOCK_NS: f64 = 1.5e9;
const ENOUGH_PAIRS: usize = 48;
const MOST_PAIRS: usize = 128;

/// The median of fewer is no shield against a burst; of a case that takes seconds there is not the time for more.
const LEAST_PAIRS: usize = 4;

/// Of steps six times as slow, each fiftieth, six blocks of so many have one 98 times out of 100; of twelve pairs 77 times, and a gate
/// that sees none passes. More than this, and longer than [`most_ns`], nobody would wait for.
const STALL_PAIRS: usize = 32;

/// Samples of several iterations may vary little: then fewer show as much, and a suite has many such benches.
const LEAST_PAIRS_OF_MANY: usize = 8;

/// A budget holds so many blocks more than the fewest that can call a slow case: the evidence of a block is seldom whole.
const BLOCKS_TO_SPARE: usize = 4;

/// Starting the processes of a block may take this share of its room before it is measured once more.
const STARTS_SHARE: f64 = 0.25;

/// What a fresh pair of processes varies by however long it is measured, where no calibration says. Reading a prompt varies
/// more (0.0083 to 0.0104 measured).
const PROCESS_STD: f64 = 0.005;
const PREFILL_STD: f64 = 0.01;

/// The pilot takes so many pairs of a case, or as many as fit the time there is, but never fewer than the least: two say nothing of how much pairs vary.
const MOST_FIRST_PAIRS: usize = 64;
const LEAST_FIRST_PAIRS: usize = 4;
/// The same of a case whose samples hold several iterations: each is a mean already, and later blocks correct the plan.
const MOST_FIRST_PAIRS_OF_MANY: usize = 16;

/// A few pairs of `plan`, which `measure` takes, within about `room_ns`, and what a pair costs: the time it takes by the time that is
/// measured of it. A bench sets up what it does not time, an engine that cannot go back reads the prompt between two steps of a decode
/// case, and of one that is not `stepwise` a gap between tokens is a small part of a whole request.
pub fn first_pairs<E>(
    plan: &PairedCase,
    stepwise: bool,
    room_ns: f64,
    clock: &dyn Clock,
    mut measure: impl FnMut(usize) -> Result<BlockCase, E>,
) -> Result<(BlockCase, f64), E> {
    let sets_up = matches!(plan.id.phase(), Phase::Bench | Phase::Decode);
    let waits = sets_up || !stepwise;
    let looked = 2;
    // What stands before a bench is run for it, and a prompt read for the first step: no part of a pair.
    let before = if sets_up { Some(measure(looked)?) } else { None };
    let begun_ns = clock.now_ns();
    let cost = |seen: &BlockCase| {
        let took_ns = (clock.now_ns() - begun_ns) as f64;
        let timed_ns: f64 = seen.base_ns.iter().chain(&seen.head_ns).map(|ns| *ns as f64).sum();
        if waits { (took_ns / timed_ns.max(1.0)).max(1.0) } else { 1.0 }
    };
    let mut seen = measure(looked)?;
    let pair_ns = pair_ns(&seen) * cost(&seen);
    let most = if plan.iterations_per_sample > 1 { MOST_FIRST_PAIRS_OF_MANY } else { MOST_FIRST_PAIRS };
    let had = looked * if sets_up { 2 } else { 1 };
    let more = ((room_ns / pair_ns) as usize).clamp(LEAST_FIRST_PAIRS, most).saturating_sub(had);
    if more > 0 {
        add(&mut seen, measure(more)?);
    }
    let cost = cost(&seen);
    before.into_iter().for_each(|before| add(&mut seen, before));
    Ok((seen, cost))
}

fn add(seen: &mut BlockCase, more: BlockCase) {
    seen.base_ns.extend(more.base_ns);
    seen.head_ns.extend(more.head_ns);
}

/// Pairs a block of one of `cases` and, where it was not given, the threshold. Gives the time the case will take of a block, nanoseconds.
pub fn decide(
    plan: &mut PairedCase,
    seen: &BlockCase,
    cost: f64,
    stepwise: bool,
    cases: usize,
    request: &PairedRequest,
) -> f64 {
    let pair_ns = pair_ns(seen) * cost;
    let ratios = seen.log_ratios().unwrap_or_default();
    let single_std = robust_std(&ratios).unwrap_or(AIM);
    // An even number: each side runs first equally often.
    let within = |ns: f64, most: usize| ((ns / pair_ns) as usize).clamp(2, most);
    let of_many = plan.iterations_per_sample > 1;
    let is_request = cost > 1.0 && !stepwise && plan.id.phase() != Phase::Bench;
    let for_stalls = if plan.id.phase() == Phase::Decode && !is_request { STALL_PAIRS } else { LEAST_PAIRS };
    let least = if of_many { LEAST_PAIRS_OF_MANY } else { within(LEAST_BLOCK_NS, ENOUGH_PAIRS).max(for_stalls) };
    let most = match is_request {
        true => within(CASE_OF_REQUESTS_NS, MOST_PAIRS),
        false => within(most_ns(cases, request.share_of_time), MOST_PAIRS)
            .max(LEAST_PAIRS.min(within(most_ns(1, 1.0), MOST_PAIRS))),
    };
    plan.pairs = wanted(single_std, AIM).max(least).min(most).next_multiple_of(2);
    let process_std = process_std(plan.id);
    let mean_error = mean_error(&seen.base_ns, plan.pairs);
    let std = process_std.hypot(median_error(single_std, plan.pairs));
    expect(plan, std, mean_error.map(|error| process_std.hypot(error)), request);
    plan.pairs as f64 * pair_ns
}

/// What a fresh pair of processes varies by, however long it is measured.
fn process_std(case: Case) -> f64 {
    if case.phase() == Phase::Prefill { PREFILL_STD } else { PROCESS_STD }
}

/// The time of a block that is left for sampling where so many blocks are to fit the budget as it takes to call a slow case; with a quick
/// look none. `fixed_ns` of each block are for something else. `None` without a budget.
pub fn room_ns(
    request: &PairedRequest,
    share: Option<ShareRecord>,
    cases: &[PairedCase],
    took_ns: u64,
    fixed_ns: f64,
) -> Option<f64> {
    if request.quick {
        return Some(0.0);
    }
    let left_ns = request.budget?.saturating_sub(Duration::from_nanos(took_ns)).as_nanos() as f64;
    let suite = share.map_or(cases.len(), |share| share.suite_cases);
    Some(left_ns / (fewest_to_fail(suite) + BLOCKS_TO_SPARE) as f64 - fixed_ns)
}

/// What starting all processes of a block takes, which took `first_ns` in the pilot: that may have fetched the model, or filled the
/// system's cache of its file. So they are started `again` where it would take much of the room of a block.
pub fn starts_ns<E>(first_ns: u64, room_ns: Option<f64>, again: impl FnOnce() -> Result<u64, E>) -> Result<u64, E> {
    let is_much = room_ns.is_some_and(|room_ns| first_ns as f64 > STARTS_SHARE * room_ns);
    if is_much { Ok(first_ns.min(again()?)) } else { Ok(first_ns) }
}

/// The error of a block's ln ratio of means, of so many pairs: by how much base's times differ from one to the next, which
/// slow swings of the machine move little. Head's are left out: what stalls in head must not widen the limit it is held to.
/// `None` of fewer than three times.
fn mean_error(base_ns: &[u64], pairs: usize) -> Option<f64> {
    let steps = base_ns.windows(2).map(|two| log_ratio(two[0] as f64, two[1] as f64));
    Some(sample_std(&steps.collect::<Option<Vec<f64>>>()?)? / (pairs as f64).sqrt())
}

/// Notes the noise to expect, and chooses the limits by it where none were given.
pub fn expect(plan: &mut PairedCase, std: f64, mean_std: Option<f64>, request: &PairedRequest) {
    plan.expected_std = Some(std);
    plan.threshold = request.threshold;
    plan.widest = widest(request.widest, plan.id, plan.threshold);
    plan.mean = Some(mean_test(request.mean_threshold, plan.threshold, mean_std));
}

/// Takes fewer pairs of each case, so that they fit `room_ns` of a block, and expects the noise that so many have.
pub fn fit(pairs: &mut Pairs, cases: &mut [PairedCase], room_ns: f64, request: &PairedRequest) {
    for (id, error) in pairs.fit(cases, room_ns) {
        let Some(case) = cases.iter_mut().find(|case| case.id == id) else { continue };
        let mean_std = case.mean.and_then(|mean| mean.expected_std);
        // What the pilot saw of single times holds as it is.
        expect(case, process_std(id).hypot(error), mean_std, request);
    }
}

/// What both samples of a pair take, nanoseconds.
pub fn pair_ns(seen: &BlockCase) -> f64 {
    let pairs = seen.base_ns.iter().zip(&seen.head_ns).map(|(base, head)| *base as f64 + *head as f64);
    median(&pairs.collect::<Vec<_>>()).unwrap_or(1.0).max(1.0)
}
