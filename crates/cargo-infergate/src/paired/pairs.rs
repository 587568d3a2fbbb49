//! How many pairs of samples a case takes of a block, and what noise is expected of it.
//!
//! The pilot has seen few pairs of a long iteration, and cannot know how much they vary; and where it fell into a slow moment
//! of the machine it planned for long iterations. So blocks that were measured correct the plan: an open case whose pairs vary
//! so much that more of them help gets them, within the time that the pilot may give a case, and what settled cases leave of
//! a block's. The number rests on earlier blocks alone, so a block is as symmetric about the change as before.

use std::collections::BTreeMap;

use infergate_core::case::{Case, Phase};
use infergate_core::clock::Clock;
use infergate_core::stats::{log_ratio, median, median_error, robust_std, sample_std};
use infergate_judge::paired::Limits;
use infergate_receipts::{BlockCase, PairedCase};

/// A case takes at most this long of a block while all are open, and all of them, of several bench targets together, no longer than the
/// second.
const CASE_NS: f64 = 5e9;
const BLOCK_NS: f64 = 25e9;

/// The same where a pair costs more than is measured of it: a server's start takes seconds of each block, and is to be worth it.
const CASE_OF_REQUESTS_NS: f64 = 4.0 * CASE_NS;

/// Within that a case takes at least this long of a block, or so many pairs: a pilot can be lucky, and beyond more blocks help more than
/// more pairs. On decode blocks of 16 pairs varied by 1.9 %, of 48 by 1.1 to 1.3, of 60 to 96 by .9 to 1.1.
const LEAST_BLOCK_NS: f64 = 1.5e9;
const ENOUGH_PAIRS: usize = 48;
const MOST_PAIRS: usize = 128;

/// The median of fewer is no shield against a burst; of a case that takes seconds there is not the time for more. A generation in turns of
/// tokens is many pairs in one: on GPT-2 blocks of one varied by 0.4 %.
const LEAST_PAIRS: usize = 4;

/// Samples of several iterations may vary little: then fewer show as much, and a suite has many such benches.
const LEAST_PAIRS_OF_MANY: usize = 8;

/// Of steps six times as slow, each fiftieth, six blocks of so many have one 98 times out of 100; of twelve pairs 77 times, and a gate
/// that sees none passes. More than this, and longer than [`most_ns`], nobody would wait for.
const STALL_PAIRS: usize = 32;

/// A block's median should not add more than this to what its two processes differ by: beyond, more blocks help more.
const AIM: f64 = 0.01;

/// Nor more than this share of what blocks vary by, where that is known from so many of them.
const SHARE_OF_BLOCKS: f64 = 1.0 / 3.0;
const TELLING_BLOCKS: usize = 4;

/// What a fresh pair of processes varies by however long it is measured, where no calibration says. Reading a prompt varies
/// more (0.0083 to 0.0104 measured).
const PROCESS_STD: f64 = 0.005;
const PREFILL_STD: f64 = 0.01;

/// The pilot takes so many pairs of a case, or as many as fit the time there is, but never fewer than the least: two say nothing of how much pairs vary.
const MOST_FIRST_PAIRS: usize = 64;
const LEAST_FIRST_PAIRS: usize = 4;
/// The same of a case whose samples hold several iterations: each is a mean already, and later blocks correct the plan.
const MOST_FIRST_PAIRS_OF_MANY: usize = 8;

/// The most that each of so many open cases takes of a block, of which they have this share, nanoseconds.
pub fn most_ns(open: usize, share: f64) -> f64 {
    CASE_NS.min(BLOCK_NS * share / open.max(1) as f64)
}

/// The pairs of `case` that each of so many builds takes, of `pairs` in all.
pub fn of_each_build(case: &PairedCase, pairs: usize, builds: usize) -> usize {
    symmetric(case, pairs.div_ceil(builds))
}

/// What the pairs of each case were like.
#[derive(Default)]
pub struct Pairs {
    /// The share of a block's time that is for these cases.
    share: f64,
    /// The time until a process can measure a case, nanoseconds.
    prepares_ns: BTreeMap<Case, f64>,
    seen: BTreeMap<Case, Seen>,
    /// The time of a block that there is for all pairs, nanoseconds, where a budget has to hold so many blocks.
    room_ns: Option<f64>,
}

struct Seen {
    /// The time that a pair takes, by the time that is measured of it.
    cost: f64,
    pilot: SeenPair,
    blocks: Vec<SeenPair>,
}

/// One pair, by those that were seen together.
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

    /// What the pairs of a block may add to it.
    fn aim(&self) -> f64 {
        let ratios: Vec<f64> = self.blocks.iter().map(|block| block.ratio).collect();
        let spread = sample_std(&ratios).filter(|_| ratios.len() >= TELLING_BLOCKS);
        spread.map_or(AIM, |spread| AIM.max(spread * SHARE_OF_BLOCKS))
    }
}

impl Pairs {
    /// Of cases for which there is this share of a block's time.
    pub fn new(share: f64) -> Self {
        Self { share, ..Self::default() }
    }

    /// A process can measure `case` after this time, nanoseconds.
    pub fn prepares(&mut self, case: Case, ns: f64) {
        self.prepares_ns.insert(case, ns);
    }

    /// Plans one of so many `cases` by what the pilot saw of it: its pairs of a block, the noise to expect of it and, where none were given,
    /// its limits. A pair takes `cost` times as long as what is measured of it.
    pub fn plan(
        &mut self,
        plan: &mut PairedCase,
        seen: &BlockCase,
        cost: f64,
        stepwise: bool,
        cases: usize,
        limits: &Limits,
    ) {
        let std = seen.log_ratios().and_then(|ratios| robust_std(&ratios)).unwrap_or(AIM);
        let pilot = SeenPair { ns: pair_ns(seen) * cost, std, ratio: 0.0 };
        self.seen.insert(plan.id, Seen { cost, pilot, blocks: Vec::new() });
        let within = |ns: f64, most: usize| ((ns / pilot.ns) as usize).clamp(symmetric(plan, 1), most);
        let is_request = cost > 1.0 && !stepwise && plan.id.phase() != Phase::Bench;
        let fewest = if plan.turn_tokens.is_some() { 1 } else { LEAST_PAIRS };
        let for_stalls = if plan.id.phase() == Phase::Decode && !is_request { STALL_PAIRS } else { fewest };
        let least = match plan.iterations_per_sample {
            1 => within(LEAST_BLOCK_NS, ENOUGH_PAIRS).max(for_stalls),
            _ => LEAST_PAIRS_OF_MANY,
        };
        let most = if is_request {
            within(CASE_OF_REQUESTS_NS, MOST_PAIRS)
        } else {
            within(most_ns(cases, self.share), MOST_PAIRS).max(fewest.min(within(CASE_NS, MOST_PAIRS)))
        };
        plan.pairs = symmetric(plan, wanted(std, AIM).max(least).min(most));
        let process_std = process_std(plan.id);
        let mean_std = mean_error(&seen.base_ns, plan.pairs).map(|error| process_std.hypot(error));
        limits.expect(plan, Some(process_std.hypot(median_error(std, plan.pairs))), mean_std);
    }

    /// Takes fewer pairs of each case, so that they take `room_ns` of a block together, but no fewer than there have to be, and expects the
    /// noise that so many have.
    pub fn fit(&mut self, cases: &mut [PairedCase], room_ns: f64, limits: &Limits) {
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
            // What the pilot saw of single times holds as it is.
            limits.expect(case, Some(std), case.mean.and_then(|mean| mean.expected_std));
        }
    }

    /// The time that a block of `cases` takes which starts so many builds, nanoseconds, by what the pilot saw; starting them comes on top.
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

    /// The pairs of each case of `open` in the next block, of a suite planned as `all`: as planned, or more where they vary
    /// so much, up to [`most_ns`] or an equal share of the time that the whole suite takes of a block; with a budget up to an equal
    /// share of the time that a block may take. Fewer where blocks vary by more than what pairs add to them.
    pub fn next(&self, all: &[PairedCase], open: &[Case]) -> BTreeMap<Case, usize> {
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
                let (enough, fitting) = (wanted(std, aim), (share_ns / pair_ns) as usize);
                // Single iterations are all there is to see stalls by.
                if enough < case.pairs && aim > AIM && case.iterations_per_sample > 1 {
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

/// So many pairs, or one more: each side runs first equally often. In turns of tokens it does so in each pair, but for the first turn, and
/// from block to block.
fn symmetric(case: &PairedCase, pairs: usize) -> usize {
    if case.turn_tokens.is_some() { pairs } else { pairs.next_multiple_of(2) }
}

/// The pairs of such ratios whose median has the error `aim`.
fn wanted(single_std: f64, aim: f64) -> usize {
    (median_error(single_std, 1) / aim).powi(2).ceil() as usize
}

/// What a fresh pair of processes varies by, however long it is measured.
fn process_std(case: Case) -> f64 {
    if case.phase() == Phase::Prefill { PREFILL_STD } else { PROCESS_STD }
}

/// The error of a block's ln ratio of means, of so many pairs: by how much base's times differ from one to the next, which
/// slow swings of the machine move little. Head's are left out: what stalls in head must not widen the limit it is held to.
/// `None` of fewer than three times.
fn mean_error(base_ns: &[u64], pairs: usize) -> Option<f64> {
    let steps = base_ns.windows(2).map(|two| log_ratio(two[0] as f64, two[1] as f64));
    Some(sample_std(&steps.collect::<Option<Vec<f64>>>()?)? / (pairs as f64).sqrt())
}

/// What both samples of a pair take, nanoseconds.
fn pair_ns(seen: &BlockCase) -> f64 {
    let pairs = seen.base_ns.iter().zip(&seen.head_ns).map(|(base, head)| *base as f64 + *head as f64);
    median(&pairs.collect::<Vec<_>>()).unwrap_or(1.0).max(1.0)
}

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
    let looked = 2;
    // What stands before a bench is run for it, and a prompt read for the first step: no part of a pair.
    let before = if sets_up { Some(measure(looked)?) } else { None };
    let begun_ns = clock.now_ns();
    let cost = |seen: &BlockCase| {
        let took_ns = (clock.now_ns() - begun_ns) as f64;
        let timed_ns: f64 = seen.base_ns.iter().chain(&seen.head_ns).map(|ns| *ns as f64).sum();
        if sets_up || !stepwise { (took_ns / timed_ns.max(1.0)).max(1.0) } else { 1.0 }
    };
    let mut seen = measure(looked)?;
    let pair_ns = pair_ns(&seen) * cost(&seen);
    let most = if plan.iterations_per_sample > 1 { MOST_FIRST_PAIRS_OF_MANY } else { MOST_FIRST_PAIRS };
    let had = looked * if sets_up { 2 } else { 1 };
    let more = ((room_ns / pair_ns) as usize).clamp(LEAST_FIRST_PAIRS, most).saturating_sub(had);
    if more > 0 {
        seen.extend(measure(more)?);
    }
    let cost = cost(&seen);
    before.into_iter().for_each(|before| seen.extend(before));
    Ok((seen, cost))
}
