//! How long a sample is: the number of its iterations, or of the tokens in a turn of a generation.

use std::time::Instant;

use super::process_pair::ProcessPair;
use infergate_core::case::Phase;
use infergate_core::stats::median;
use infergate_core::worker::{Capability, WorkerError};
use infergate_receipts::{PairedCase, Side};

/// The intended time of a turn of a generation, or of a sample of a short case (ns). A turn is at least one token; a sample holds as many
/// iterations as fit.
///
/// It is short against the swings of the machine, and long against reading the clock and requesting a sample: on a shared machine the ratio
/// of a pair of samples varies as much if they take 17 ms as if they take 0.6 ms (6 to 9 %, docs/evidence/noise.md), so short samples show
/// the same in less time. In an hour with busy neighbours blocks of generations varied by 6.9 % in turns of 64 tokens, 2.0 of 16, 1.4 of 4
/// and 1.1 of 1; in a quiet one there was no difference.
const TURN_NS: f64 = 2e6;
/// An iteration shorter than this (ns) is timed together with others.
const SHORT_NS: f64 = TURN_NS / 4.0;
/// An iteration longer than this (ns) is long even if it was interrupted.
const SURELY_LONG_NS: f64 = 3e8;
/// The fewest successive steps in a sample of a decode case, if a side may compute some of them before they are requested.
const STREAMED_STEPS: usize = 8;
/// A bench whose first iteration takes this long (ns) is not tried a second time, and so not warmed up.
const TOO_LONG_NS: f64 = 3e9;
/// The longest time of a sample of a criterion bench with its set-up, which is not timed (ns). What is set up for a sample is in memory at
/// once, or a part of it.
const SAMPLE_NS: f64 = 1.5e7;
/// The largest factor by which the iterations of a bench grow from one trial to the next: a trial of few says little of one.
const GROWTH: usize = 32;
/// The most times that they grow.
const MOST_GROWTHS: usize = 8;
/// Further trials if one may have been interrupted.
const TRIALS: usize = 4;
/// A bench whose second iteration takes less than this part of its first one, on either side, is warmed up. Most are not, since for a long
/// one this costs as much as what is measured.
const WARMER: f64 = 0.8;
/// The most iterations in a sample. It is 1 if a side cannot time several together.
const MOST_ITERATIONS: usize = 1_000_000;

/// Sizes the samples of `plan` by head's times: the number of iterations, or of the tokens in a turn. Fewer iterations if base takes
/// hundreds of times as long. After an error `plan` has the iterations that were tried last.
///
/// An engine that is not `stepwise` goes on computing while the other side runs: its smallest turn is a whole request.
pub fn size_samples(pair: &mut ProcessPair, plan: &mut PairedCase, stepwise: bool) -> Result<(), WorkerError> {
    let wanted = size_by_head(pair, plan, stepwise)?;
    plan.iterations_per_sample =
        cap_iterations(wanted, |iterations| Ok::<_, WorkerError>(trial(pair, Side::Base, plan, iterations)?.timed_ns))?;
    Ok(())
}

/// Takes one sample of `iterations`, which become those of `plan`.
pub fn trial(
    pair: &mut ProcessPair,
    side: Side,
    plan: &mut PairedCase,
    iterations: usize,
) -> Result<Trial, WorkerError> {
    plan.iterations_per_sample = iterations;
    let begun = Instant::now();
    let samples = pair.sample(side, plan)?;
    let waited_ns = begun.elapsed().as_nanos() as f64 / iterations as f64;
    Ok(Trial { timed_ns: median(&samples.times_ns()).unwrap_or(1.0).max(1.0), waited_ns })
}

/// `iterations`, or as many as a side does within `SURELY_LONG_NS`. Tries few first, so that nothing takes minutes. `sample` takes a number
/// of iterations and gives the time of one of them, nanoseconds.
pub fn cap_iterations<E>(iterations: usize, mut sample: impl FnMut(usize) -> Result<f64, E>) -> Result<usize, E> {
    if iterations <= 1 {
        return Ok(1);
    }
    let mut some = 1;
    loop {
        let mut each_ns = sample(some)?;
        if each_ns * iterations as f64 <= SURELY_LONG_NS {
            return Ok(iterations);
        }
        // It may have been interrupted, and a first run is slow.
        each_ns = each_ns.min(sample(some)?);
        some *= GROWTH;
        if some >= iterations || each_ns * some as f64 > SURELY_LONG_NS {
            return Ok(((SURELY_LONG_NS / each_ns) as usize).clamp(1, iterations));
        }
    }
}

/// Iterations of a sample by head's times. They are estimated twice, the second time from a sample of the first estimate: a first run is
/// slow.
fn size_by_head(pair: &mut ProcessPair, plan: &mut PairedCase, stepwise: bool) -> Result<usize, WorkerError> {
    let case = plan.id;
    let most = if pair.can(Capability::Iterations) { MOST_ITERATIONS } else { 1 };
    let fitting = |iteration_ns: f64| {
        if iteration_ns < SHORT_NS { ((TURN_NS / iteration_ns) as usize).clamp(1, most) } else { 1 }
    };
    let mut seen = first_trial(|| trial(pair, Side::Head, plan, 1))?;
    if case.phase() == Phase::Bench {
        if pair.can(Capability::WarmUp) {
            match warm_up(pair, Side::Head, plan, seen)? {
                Some(warm) => seen = warm,
                None => {
                    let of_base = first_trial(|| trial(pair, Side::Base, plan, 1))?;
                    warm_up(pair, Side::Base, plan, of_base)?;
                }
            }
        }
        return grow_iterations(seen, fitting, |iterations| trial(pair, Side::Head, plan, iterations));
    }
    for _ in 0..2 {
        if fitting(seen.timed_ns) > 1 {
            seen = trial(pair, Side::Head, plan, fitting(seen.timed_ns))?;
        }
    }
    let mut iterations = fitting(seen.timed_ns);
    if case.phase() == Phase::Decode && !stepwise {
        iterations = iterations.max(STREAMED_STEPS).min(most);
    }
    let divisible = stepwise && pair.can(Capability::Turn);
    if case.phase() == Phase::Generate && iterations == 1 && divisible {
        let token_ns = seen.timed_ns / case.output_tokens() as f64;
        plan.turn_tokens = Some(((TURN_NS / token_ns) as usize).clamp(1, case.output_tokens()));
    }
    Ok(iterations)
}

/// Plans to warm a bench up if its second iteration is clearly faster, and gives [that trial](trial_when_warm).
fn warm_up(
    pair: &mut ProcessPair,
    side: Side,
    plan: &mut PairedCase,
    first: Trial,
) -> Result<Option<Trial>, WorkerError> {
    plan.warm_up = true;
    let warmed = trial_when_warm(first, || trial(pair, side, plan, 1))?;
    plan.warm_up = warmed.is_some();
    Ok(warmed)
}

/// One sample: how long each iteration took, and how long each was waited for, nanoseconds.
#[derive(Clone, Copy)]
pub struct Trial {
    pub timed_ns: f64,
    /// With set-up and request.
    pub waited_ns: f64,
}

/// A trial of the first iteration.
fn first_trial<E>(mut trial: impl FnMut() -> Result<Trial, E>) -> Result<Trial, E> {
    let mut seen = trial()?;
    for _ in 0..TRIALS {
        // An interrupted trial looks slow.
        if (SHORT_NS..SURELY_LONG_NS).contains(&seen.timed_ns) {
            seen.timed_ns = seen.timed_ns.min(trial()?.timed_ns);
        }
    }
    Ok(seen)
}

/// A trial of a bench's second iteration, if that takes clearly less than the first one of its closure: what the closure makes is filled
/// then, and `cargo bench` times nearly nothing else. `None` if it does not.
pub fn trial_when_warm<E>(first: Trial, mut second: impl FnMut() -> Result<Trial, E>) -> Result<Option<Trial>, E> {
    if first.timed_ns >= TOO_LONG_NS {
        return Ok(None);
    }
    // A long first iteration was not interrupted, but maybe slowed down: both trials have to show it.
    let wanted = if first.timed_ns < SURELY_LONG_NS { 1 } else { TRIALS / 2 };
    let mut warm = 0;
    for left in (0..TRIALS / 2).rev() {
        let seen = second()?;
        warm += usize::from(seen.timed_ns < WARMER * first.timed_ns);
        if warm == wanted {
            return Ok(Some(seen));
        }
        if warm + left < wanted {
            break;
        }
    }
    Ok(None)
}

/// Iterations of a bench's sample: as many as fit by the time that is timed, `fitting`, and no more than fit by the time that is
/// waited for. A bench can set up for a second what it times for a microsecond. The wait for `first` includes the code before the
/// bench; each wait includes what the closure does once a sample.
pub fn grow_iterations<E>(
    first: Trial,
    fitting: impl Fn(f64) -> usize,
    mut trial: impl FnMut(usize) -> Result<Trial, E>,
) -> Result<usize, E> {
    let once_ns = first.waited_ns.min(trial(1)?.waited_ns);
    let room_ns = SAMPLE_NS.max(once_ns / 4.0);
    // What one more iteration is waited for decides.
    let bounded = |seen: Trial, iterations: usize| {
        let each_ns = (seen.waited_ns * iterations as f64 - once_ns) / (iterations - 1) as f64;
        fitting(seen.timed_ns).min((room_ns / each_ns.max(1.0)) as usize).max(1)
    };
    let mut iterations = 2;
    if fitting(first.timed_ns) < iterations {
        return Ok(1);
    }
    for _ in 0..MOST_GROWTHS {
        let mut seen = trial(iterations)?;
        let most = iterations * GROWTH;
        for _ in 0..TRIALS {
            // An interrupted trial looks expensive, and would end the growth.
            let is_short = seen.waited_ns * (iterations as f64) < SURELY_LONG_NS;
            if !is_short || bounded(seen, iterations) >= fitting(seen.timed_ns).min(most) {
                break;
            }
            let again = trial(iterations)?;
            if again.waited_ns < seen.waited_ns {
                seen = again;
            }
        }
        let next = bounded(seen, iterations).min(most);
        if next <= iterations {
            return Ok(next);
        }
        iterations = next;
    }
    Ok(iterations)
}
