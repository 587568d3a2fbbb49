//! How many pairs of samples a case takes of a block, and what noise is expected of it.
//!
//! The pilot sees few pairs of a long iteration, and cannot know how much they vary; in a slow moment of the machine it plans for
//! iterations that are too long. So measured blocks correct the plan: an open case gets more pairs where more help, within the time that
//! the pilot may give a case and the time that settled cases leave of a block. The number rests on earlier blocks alone, so a block is as
//! symmetric about the change as before.

use std::collections::BTreeMap;

use infergate_core::case::{Case, Phase};
use infergate_core::clock::Clock;
use infergate_core::stats::{log_ratio, median, median_error, robust_std, sample_std};
use infergate_judge::paired::Limits;
use infergate_receipts::{BlockCase, PairedCase};

/// The longest time of a case in a block while all cases are open (ns).
const CASE_NS: f64 = 5e9;
/// The longest time of all cases in a block, those of other bench targets included (ns).
const BLOCK_NS: f64 = 25e9;

/// The longest time of a case in a block if its pairs are requests (ns): a server's start takes seconds of each block, and should be worth
/// it.
const CASE_OF_REQUESTS_NS: f64 = 4.0 * CASE_NS;

/// The shortest time of a case in a block if its samples are single iterations (ns), since the pilot may have seen a quiet moment.
const LEAST_BLOCK_NS: f64 = 1.5e9;
/// The number of pairs from which on a case needs no more of that time. More blocks help more than more pairs: on decode, blocks of 16
/// pairs varied by 1.9 %, of 48 by 1.1 to 1.3 %, of 60 to 96 by 0.9 to 1.1 %.
const ENOUGH_PAIRS: usize = 48;
/// The most pairs of a case in a block.
const MOST_PAIRS: usize = 128;

/// The fewest pairs of a case in a block: the median of fewer is no shield against a burst, and a case that takes seconds has no time for
/// more. A generation in turns of tokens is many pairs in one: on GPT-2, blocks of one varied by 0.4 %.
const LEAST_PAIRS: usize = 4;

/// The fewest pairs of a case whose samples hold several iterations. They may vary little: then few show as much, and a suite has many such
/// benches.
const LEAST_PAIRS_OF_MANY: usize = 8;

/// The fewest pairs of a decode case, within [`most_ns`]. If every fiftieth step stalls, six blocks of 32 pairs have a stall in 98 of 100
/// gates, six blocks of twelve pairs in 77, and a gate that sees none passes.
const STALL_PAIRS: usize = 32;

/// The largest error that the median of a block should have, as a fraction: below it, more blocks help more than more pairs.
const TARGET_ERROR: f64 = 0.01;

/// The error of a block's median may be larger: up to this share of the standard deviation of blocks.
const SHARE_OF_BLOCKS: f64 = 1.0 / 3.0;
/// The number of blocks that have to show this standard deviation.
const BLOCKS_FOR_AIM: usize = 4;

/// The standard deviation between fresh pairs of processes, however long each is measured, as a fraction. A calibration replaces it.
const PROCESS_STD: f64 = 0.005;
/// The same for prefill (0.0083 to 0.0104 measured).
const PREFILL_STD: f64 = 0.01;

/// The most pairs of a case that the pilot takes, if time allows.
const MOST_FIRST_PAIRS: usize = 64;
/// The fewest pairs of a case that the pilot takes: two do not show how much pairs vary.
const LEAST_FIRST_PAIRS: usize = 4;
/// The most of a case whose samples hold several iterations: each is a mean already, and later blocks correct the plan.
const MOST_FIRST_PAIRS_OF_MANY: usize = 8;

/// The longest that each of `open` cases takes of a block, nanoseconds; `share` is the part of a block's time that is for them.
pub fn most_ns(open: usize, share: f64) -> f64 {
    CASE_NS.min(BLOCK_NS * share / open.max(1) as f64)
}

/// How many of a case's `pairs` each of `builds` builds takes.
pub fn of_each_build(case: &PairedCase, pairs: usize, builds: usize) -> usize {
    symmetric(case, pairs.div_ceil(builds))
}

/// How many pairs each case takes of a block, by what its pairs were like so far.
#[derive(Default)]
pub struct PairPlan {
    /// The share of a block's time that is for these cases.
    share: f64,
    /// The time until a process can measure a case, nanoseconds.
    prepares_ns: BTreeMap<Case, f64>,
    seen: BTreeMap<Case, Seen>,
    /// The time of a block that is for all pairs, nanoseconds; `None` without a budget.
    room_ns: Option<f64>,
}

struct Seen {
    /// The time that a pair takes / the time that is measured of it.
    cost: f64,
    pilot: SeenPair,
    blocks: Vec<SeenPair>,
}

/// A typical pair of the pilot or of a block.
#[derive(Clone, Copy)]
struct SeenPair {
    /// The time that it takes, nanoseconds.
    ns: f64,
    /// Standard deviation of its ln ratio.
    std: f64,
    /// The median of the ln ratios.
    ratio: f64,
}

impl Seen {
    fn median(&self, of: fn(&SeenPair) -> f64) -> Option<f64> {
        median(&self.blocks.iter().map(of).collect::<Vec<f64>>())
    }

    /// The largest error that a block's median may have, as a fraction.
    fn aim(&self) -> f64 {
        let ratios: Vec<f64> = self.blocks.iter().map(|block| block.ratio).collect();
        let spread = sample_std(&ratios).filter(|_| ratios.len() >= BLOCKS_FOR_AIM);
        spread.map_or(TARGET_ERROR, |spread| TARGET_ERROR.max(spread * SHARE_OF_BLOCKS))
    }
}

impl PairPlan {
    /// For cases that have this share of a block's time.
    pub fn new(share: f64) -> Self {
        Self { share, ..Self::default() }
    }

    /// Notes the time until a process can measure `case`, nanoseconds.
    pub fn note_preparation(&mut self, case: Case, ns: f64) {
        self.prepares_ns.insert(case, ns);
    }

    /// Plans a case, one of `cases`, by what the pilot saw of it: its pairs of a block, its expected noise and, where none were given, its
    /// limits. A pair takes `cost` times as long as what is measured of it.
    pub fn plan(
        &mut self,
        case: &mut PairedCase,
        seen: &BlockCase,
        cost: f64,
        stepwise: bool,
        cases: usize,
        limits: &Limits,
    ) {
        let std = seen.log_ratios().and_then(|ratios| robust_std(&ratios)).unwrap_or(TARGET_ERROR);
        let pilot = SeenPair { ns: pair_ns(seen) * cost, std, ratio: 0.0 };
        self.seen.insert(case.id, Seen { cost, pilot, blocks: Vec::new() });
        let within = |ns: f64, most: usize| ((ns / pilot.ns) as usize).clamp(symmetric(case, 1), most);
        let is_request = cost > 1.0 && !stepwise && case.id.phase() != Phase::Bench;
        let fewest = if case.turn_tokens.is_some() { 1 } else { LEAST_PAIRS };
        let for_stalls = if case.id.phase() == Phase::Decode && !is_request { STALL_PAIRS } else { fewest };
        let least = match case.iterations_per_sample {
            1 => within(LEAST_BLOCK_NS, ENOUGH_PAIRS).max(for_stalls),
            _ => LEAST_PAIRS_OF_MANY,
        };
        let most = if is_request {
            within(CASE_OF_REQUESTS_NS, MOST_PAIRS)
        } else {
            within(most_ns(cases, self.share), MOST_PAIRS).max(fewest.min(within(CASE_NS, MOST_PAIRS)))
        };
        case.pairs = symmetric(case, pairs_for_error(std, TARGET_ERROR).max(least).min(most));
        let process_std = process_std(case.id);
        let mean_std = mean_error(&seen.base_ns, case.pairs).map(|error| process_std.hypot(error));
        limits.set_limits_by_noise(case, Some(process_std.hypot(median_error(std, case.pairs))), mean_std);
    }

    /// Reduces the pairs of each case, down to the fewest, so that all take `room_ns` of a block together, and the expected noise with
    /// them.
    pub fn reduce_to(&mut self, cases: &mut [PairedCase], room_ns: f64, limits: &Limits) {
        let prepare_ns: f64 = cases.iter().filter_map(|case| self.prepares_ns.get(&case.id)).sum();
        let room_ns = room_ns - prepare_ns;
        self.room_ns = Some(room_ns);
        let all_ns = self.block_ns(cases, 1) - prepare_ns;
        if all_ns <= room_ns {
            return;
        }
        for case in cases {
            let Some(seen) = self.seen.get(&case.id) else { continue };
            let least = if case.iterations_per_sample > 1 { LEAST_PAIRS } else { 2 };
            let scaled = (case.pairs as f64 * room_ns.max(0.0) / all_ns) as usize / 2 * 2;
            case.pairs = scaled.max(least).min(case.pairs);
            let std = process_std(case.id).hypot(median_error(seen.pilot.std, case.pairs));
            // The noise of means rests on single times, and not on the number of pairs.
            limits.set_limits_by_noise(case, Some(std), case.mean.and_then(|mean| mean.expected_std));
        }
    }

    /// The time of a block of `cases` with `builds` builds, nanoseconds, by what the pilot saw; without the start of their processes.
    pub fn block_ns(&self, cases: &[PairedCase], builds: usize) -> f64 {
        let of_case = |case: &PairedCase| {
            let pairs = of_each_build(case, case.pairs, builds) as f64;
            let prepare_ns = self.prepares_ns.get(&case.id).copied().unwrap_or_default();
            Some(builds as f64 * (prepare_ns + pairs * self.seen.get(&case.id)?.pilot.ns))
        };
        cases.iter().filter_map(of_case).sum()
    }

    /// Forgets the blocks: the next one is the first of another gate.
    pub fn forget_blocks(&mut self) {
        self.seen.values_mut().for_each(|seen| seen.blocks.clear());
    }

    /// Takes note of a block.
    pub fn note(&mut self, block: &BlockCase) {
        let (Some(known), Some(ratios)) = (self.seen.get_mut(&block.id), block.log_ratios()) else { return };
        let sum_ns = block.base_ns.iter().chain(&block.head_ns).map(|ns| *ns as f64).sum::<f64>();
        let ns = sum_ns / ratios.len().max(1) as f64 * known.cost;
        // One pair alone varies by nothing.
        let std = robust_std(&ratios).filter(|_| ratios.len() > 1);
        let seen = std.zip(median(&ratios)).map(|(std, ratio)| SeenPair { ns, std, ratio });
        known.blocks.extend(seen);
    }

    /// The pairs of each open case in the next block; `all` is the suite as planned. As many as planned; or more where they vary much, up
    /// to [`most_ns`] or an equal share of the time that the suite takes of a block (with a budget: may take); or fewer where blocks vary
    /// much more than the error of their medians.
    pub fn in_next_block(&self, all: &[PairedCase], open: &[Case]) -> BTreeMap<Case, usize> {
        let known = |case: &PairedCase| {
            let seen = self.seen.get(&case.id)?;
            Some((seen.median(|pair| pair.ns)?.max(1.0), seen.median(|pair| pair.std)?, seen.aim()))
        };
        let suite_ns: f64 = all.iter().filter_map(|case| Some(case.pairs as f64 * known(case)?.0)).sum();
        let of_each = |block_ns: f64| block_ns / open.len().max(1) as f64;
        let share_ns = match self.room_ns {
            Some(room_ns) => of_each(room_ns),
            None => of_each(suite_ns).max(most_ns(open.len(), self.share)),
        };
        let of_case = |case: &PairedCase| {
            let pairs = known(case).map_or(case.pairs, |(pair_ns, std, aim)| {
                let (enough, fitting) = (pairs_for_error(std, aim), (share_ns / pair_ns) as usize);
                // Samples of one iteration stay: only they show a stall.
                if enough < case.pairs && aim > TARGET_ERROR && case.iterations_per_sample > 1 {
                    enough.max(LEAST_PAIRS_OF_MANY)
                } else {
                    enough.min(fitting).max(case.pairs)
                }
            });
            (case.id, symmetric(case, pairs))
        };
        all.iter().filter(|case| open.contains(&case.id)).map(of_case).collect()
    }
}

/// `pairs`, or one more, so that each side runs first equally often. In turns of tokens the sides alternate within each pair.
fn symmetric(case: &PairedCase, pairs: usize) -> usize {
    if case.turn_tokens.is_some() { pairs } else { pairs.next_multiple_of(2) }
}

/// The number of pairs whose median has the error `aim`, where single ratios vary by `single_std`.
fn pairs_for_error(single_std: f64, aim: f64) -> usize {
    (median_error(single_std, 1) / aim).powi(2).ceil() as usize
}

/// The standard deviation between fresh pairs of processes, however long each is measured, as a fraction.
fn process_std(case: Case) -> f64 {
    if case.phase() == Phase::Prefill { PREFILL_STD } else { PROCESS_STD }
}

/// The error of the ln ratio of means in a block of `pairs` pairs. It follows from how much successive times of base differ, which slow
/// swings of the machine move little. Head's times do not count: a stall of head must not widen the limit that judges it. `None` for fewer
/// than three times.
fn mean_error(base_ns: &[u64], pairs: usize) -> Option<f64> {
    let steps = base_ns.windows(2).map(|two| log_ratio(two[0] as f64, two[1] as f64));
    Some(sample_std(&steps.collect::<Option<Vec<f64>>>()?)? / (pairs as f64).sqrt())
}

/// The time of both samples of a typical pair, nanoseconds.
fn pair_ns(seen: &BlockCase) -> f64 {
    let pairs = seen.base_ns.iter().zip(&seen.head_ns).map(|(base, head)| *base as f64 + *head as f64);
    median(&pairs.collect::<Vec<_>>()).unwrap_or(1.0).max(1.0)
}

/// Takes a few pairs of `case` by `measure`, within about `room_ns`. Gives them, and what a pair costs: the time that it takes / the time
/// that is measured of it. The cost is above 1 for a bench with a set-up that is not timed, for an engine that reads the prompt again
/// between two steps of a decode case, and for one that is not `stepwise`, where a gap between tokens is a small part of a request.
pub fn first_pairs<E>(
    case: &PairedCase,
    stepwise: bool,
    room_ns: f64,
    clock: &dyn Clock,
    mut measure: impl FnMut(usize) -> Result<BlockCase, E>,
) -> Result<(BlockCase, f64), E> {
    let sets_up = matches!(case.id.phase(), Phase::Bench | Phase::Decode);
    let looked = 2;
    // The first call runs the code before a bench and reads the prompt of a decode case, which are no part of a pair.
    let before = if sets_up { Some(measure(looked)?) } else { None };
    let begun_ns = clock.now_ns();
    let cost = |seen: &BlockCase| {
        let took_ns = (clock.now_ns() - begun_ns) as f64;
        let timed_ns: f64 = seen.base_ns.iter().chain(&seen.head_ns).map(|ns| *ns as f64).sum();
        if sets_up || !stepwise { (took_ns / timed_ns.max(1.0)).max(1.0) } else { 1.0 }
    };
    let mut seen = measure(looked)?;
    let pair_ns = pair_ns(&seen) * cost(&seen);
    let most = if case.iterations_per_sample > 1 { MOST_FIRST_PAIRS_OF_MANY } else { MOST_FIRST_PAIRS };
    let had = looked * if sets_up { 2 } else { 1 };
    let more = ((room_ns / pair_ns) as usize).clamp(LEAST_FIRST_PAIRS, most).saturating_sub(had);
    if more > 0 {
        seen.extend(measure(more)?);
    }
    let cost = cost(&seen);
    before.into_iter().for_each(|before| seen.extend(before));
    Ok((seen, cost))
}
