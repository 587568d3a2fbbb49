//! How many pairs an open case takes of the next block.
//!
//! The pilot has seen few pairs of a long iteration, and cannot know how much they vary; and where it fell into a slow moment
//! of the machine it planned for long iterations. So blocks that were measured correct the plan: an open case whose pairs vary
//! so much that more of them help gets them, within the time that the pilot may give a case, and what settled cases leave of
//! a block's. The number rests on earlier blocks alone, so a block is as symmetric about the change as before.

use std::collections::BTreeMap;

use infergate_core::case::Case;
use infergate_core::stats::{median, median_error, robust_std, sample_std};
use infergate_receipts::{BlockCase, PairedCase};

/// A case takes at most this long of a block while all are open, and all of them, of several bench targets together, no longer than the
/// second.
const CASE_NS: f64 = 5e9;
const BLOCK_NS: f64 = 25e9;

/// The same where a pair costs more than is measured of it: a server's start takes seconds of each block, and is to be worth it.
pub const CASE_OF_REQUESTS_NS: f64 = 4.0 * CASE_NS;

/// A block's median should not add more than this to what its two processes differ by: beyond, more blocks help more.
pub const AIM: f64 = 0.01;

/// The fewest pairs of samples that each hold several iterations, where the time is short.
const LEAST_PAIRS_IN_BUDGET: usize = 4;

/// The fewest where more add little.
const LEAST_PAIRS: usize = 8;

/// Nor more than this share of what blocks vary by, where that is known from so many of them.
const SHARE_OF_BLOCKS: f64 = 1.0 / 3.0;
const TELLING_BLOCKS: usize = 4;

/// The most that each of so many open cases takes of a block, of which they have this share, nanoseconds.
pub fn most_ns(open: usize, share: f64) -> f64 {
    CASE_NS.min(BLOCK_NS * share / open.max(1) as f64)
}

/// The pairs of such ratios whose median has the error `aim`.
pub fn wanted(single_std: f64, aim: f64) -> usize {
    (median_error(single_std, 1) / aim).powi(2).ceil() as usize
}

/// What the pairs of earlier blocks were like.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// The share of a block's time that is for these cases.
    share: f64,
    seen: BTreeMap<Case, Seen>,
    /// The time that a pair takes, by the time that is measured of it; 1 for a case that is not here.
    costs: BTreeMap<Case, f64>,
    /// What the pilot saw of a pair: the time it takes, nanoseconds, and the standard deviation of its ln ratio.
    pilot: BTreeMap<Case, (f64, f64)>,
    /// The time of a block that there is for all pairs, nanoseconds, where a budget has to hold so many blocks.
    room_ns: Option<f64>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    /// Time of a pair, nanoseconds, by block.
    pair_ns: Vec<f64>,
    /// Standard deviation of one pair's ln ratio, by block.
    single_std: Vec<f64>,
    /// The ln ratio of each block.
    ratio: Vec<f64>,
}

impl Pairs {
    /// Of cases for which there is this share of a block's time.
    pub fn new(share: f64) -> Self {
        Self { share, seen: BTreeMap::new(), costs: BTreeMap::new(), pilot: BTreeMap::new(), room_ns: None }
    }

    /// A pair of `case` takes `cost` times as long as what is measured of it.
    pub fn cost(&mut self, case: Case, cost: f64) {
        self.costs.insert(case, cost);
    }

    /// What the pilot saw of a pair of `case`.
    pub fn plan(&mut self, case: Case, pair_ns: f64, single_std: f64) {
        self.pilot.insert(case, (pair_ns, single_std));
    }

    /// Fewer pairs of each case, so that they take `room_ns` of a block together, but no fewer than there have to be. Gives the cases
    /// with the error that so many pairs leave.
    pub fn fit(&mut self, cases: &mut [PairedCase], room_ns: f64) -> Vec<(Case, f64)> {
        self.room_ns = Some(room_ns);
        let pilot = |case: &PairedCase| self.pilot.get(&case.id).copied();
        let all_ns: f64 = cases.iter().filter_map(|case| Some(case.pairs as f64 * pilot(case)?.0)).sum();
        if all_ns <= room_ns {
            return Vec::new();
        }
        let mut fitted = Vec::new();
        for case in cases {
            let Some((_, single_std)) = pilot(case) else { continue };
            let least = if case.iterations_per_sample > 1 { LEAST_PAIRS_IN_BUDGET } else { 2 };
            let scaled = (case.pairs as f64 * room_ns.max(0.0) / all_ns) as usize / 2 * 2;
            case.pairs = scaled.max(least).min(case.pairs);
            fitted.push((case.id, median_error(single_std, case.pairs)));
        }
        fitted
    }

    /// The time that a block of `cases` takes, nanoseconds, by what the pilot saw.
    pub fn block_ns(&self, cases: &[PairedCase]) -> f64 {
        cases.iter().filter_map(|case| Some(case.pairs as f64 * self.pilot.get(&case.id)?.0)).sum()
    }

    /// Forgets the blocks: the next one is the first of another gate.
    pub fn forget_blocks(&mut self) {
        self.seen.clear();
    }

    /// Takes note of a block.
    pub fn note(&mut self, block: &BlockCase) {
        let pairs = block.base_ns.len() as f64;
        let sum_ns = block.base_ns.iter().chain(&block.head_ns).map(|ns| *ns as f64).sum::<f64>();
        let seen = block.log_ratios().and_then(|ratios| Some((robust_std(&ratios)?, median(&ratios)?)));
        if let (Some((std, ratio)), true) = (seen, pairs > 0.0) {
            let cost = self.costs.get(&block.id).copied().unwrap_or(1.0);
            let seen = self.seen.entry(block.id).or_default();
            seen.pair_ns.push(sum_ns / pairs * cost);
            seen.single_std.push(std);
            seen.ratio.push(ratio);
        }
    }

    /// The pairs of each case of `open` in the next block, of a suite planned as `all`: as planned, or more where they vary
    /// so much, up to [`most_ns`] or an equal share of the time that the whole suite takes of a block; with a budget up to an equal
    /// share of the time that a block may take. Fewer where blocks vary by more than what pairs add to them.
    pub fn next(&self, all: &[PairedCase], open: &[Case]) -> BTreeMap<Case, usize> {
        let known = |case: &PairedCase| -> Option<(f64, f64)> {
            let seen = self.seen.get(&case.id)?;
            Some((median(&seen.pair_ns)?.max(1.0), median(&seen.single_std)?))
        };
        let suite_ns: f64 = all.iter().filter_map(|case| Some(case.pairs as f64 * known(case)?.0)).sum();
        let of_each = |block_ns: f64| block_ns / open.len().max(1) as f64;
        let share_ns = match self.room_ns {
            Some(room_ns) => of_each(room_ns),
            None => of_each(suite_ns).max(most_ns(open.len(), self.share)),
        };
        let of_case = |case: &PairedCase| {
            let aim = self.aim(case.id);
            let enough = known(case).map(|(pair_ns, std)| (wanted(std, aim), (share_ns / pair_ns) as usize));
            let pairs = match enough {
                // Single iterations are all there is to see stalls by.
                Some((enough, _)) if enough < case.pairs && aim > AIM && case.iterations_per_sample > 1 => {
                    enough.max(LEAST_PAIRS)
                }

                Some((enough, fitting)) => enough.min(fitting).max(case.pairs),
                None => case.pairs,
            };
            (case.id, pairs.next_multiple_of(2))
        };
        all.iter().filter(|case| open.contains(&case.id)).map(of_case).collect()
    }

    /// What the pairs of a block may add to it.
    fn aim(&self, case: Case) -> f64 {
        let ratios = self.seen.get(&case).map_or(&[][..], |seen| &seen.ratio);
        let spread = sample_std(ratios).filter(|_| ratios.len() >= TELLING_BLOCKS);
        spread.map_or(AIM, |spread| AIM.max(spread * SHARE_OF_BLOCKS))
    }
}
