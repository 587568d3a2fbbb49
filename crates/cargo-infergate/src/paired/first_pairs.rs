//! The pilot's pairs of a case, by which the rest is decided.

use super::planning::pair_times_ns;
use infergate_core::case::Phase;
use infergate_core::clock::Clock;
use infergate_core::stats::median;
use infergate_receipts::{BlockCase, PairedCase};

/// So many pairs, or as many as fit the time there is, but never fewer than the least: two say nothing of how much pairs vary.
const MOST: usize = 64;
const LEAST: usize = 4;
/// The same of a case whose samples hold several iterations: each is a mean already, and later blocks correct the plan.
const MOST_OF_MANY: usize = 16;

/// A few pairs of `plan`, which `measure` takes, within about `room_ns`, and what a pair costs: the time it takes by the time that is
/// measured of it. A bench sets up what it does not time, an engine that cannot go back reads the prompt between two steps of a decode
/// case, and of one that is not `stepwise` a gap between tokens is a small part of a whole request.
pub fn take<E>(
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
    let pair_ns = median(&pair_times_ns(&seen)).unwrap_or(1.0).max(1.0) * cost(&seen);
    let most = if plan.iterations_per_sample > 1 { MOST_OF_MANY } else { MOST };
    let had = looked * if sets_up { 2 } else { 1 };
    let more = ((room_ns / pair_ns) as usize).clamp(LEAST, most).saturating_sub(had);
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
