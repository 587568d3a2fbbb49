//! The heap's rule. What is counted has no noise, but it may swing, and it may fill: caches are filled and emptied, buffers
//! alternate. Whoever rises is followed for as many runs again, and those tell a leak from a plateau.

use super::MIN_RUNS;
use super::tail::{goes_on, keeps_its_pace, slows_down};
use crate::stats::median;

/// So many of the seven steps between the eight quarters have to rise: fewer are steps of a table, or a late buffer.
const LEAST_RISING_STEPS: usize = 5;
/// So many of the first three of them have to rise: growth that begins later is a leak only above all that was there before it, since a
/// cache that is flushed falls and fills again.
const LEAST_EARLY_STEPS: usize = 2;
/// Low points that rise in so many runs of the last quarter, above all before it, are followed further.
const LEAST_LATE_RISES: usize = 5;
/// Growth without a visible trend that is this much smaller in the second half is too uneven to be called.
const LEAST_LASTING: f64 = 1.0 / 3.0;
/// One run's growth counts for this many times the median of those that grew, at most: a hash table that doubles is one step.
const MOST_OF_A_STEP: f64 = 10.0;
/// Growth that is this little smaller, and slows down no more, is a leak whose list or table found its size at first.
const HARDLY_SLOWER: f64 = 0.8;
/// Growth that slows down to less than this between one half and the next is a cache that fills; a larger one may be either.
const MOST_OF_A_PLATEAU: f64 = 0.5;

/// What the runs that confirm say of a heap that rose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeapGrowth {
    /// It goes on, and does not slow down to nothing.
    Leak,
    /// It ended, or slows down as a cache does that fills.
    Plateau,
    /// What rose was given back.
    CameBack,
    /// It slows down, and neither as a cache nor as a leak would.
    Open,
}

/// How a counted series moved over twice the runs asked for (bytes or blocks).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeapTrend {
    /// The decision.
    pub growth: HeapGrowth,
    /// From the low point of all runs to that of the last quarter.
    pub kept: u64,
    /// Rise of the low points over the runs asked for, per run.
    pub first_per_run: f64,
    /// Over the runs that confirm, per run.
    pub per_run: f64,
    /// Over their last half, per run: a leak that is smaller than this cannot be seen behind a plateau.
    pub last_per_run: f64,
    /// Runs in which they rose.
    pub rises: usize,
    /// The last of these, from 1; 0 if there was none.
    pub last_rise_run: usize,
    /// Runs from one rise of the low points to the next, on average.
    pub runs_between_rises: f64,
}

/// Whether the low points of the runs asked for rise, so that as many again have to tell why. `None` below [`MIN_RUNS`].
///
/// With e_k the smallest value from the k-th quarter on, two of the steps e_1 - e_0, e_2 - e_1, e_3 - e_2 rise; or the low points
/// rise in five runs of the last quarter, above all that was live before it. What comes back to its low point once in a quarter
/// of the runs, or rises only once, does not.
pub fn heap_rises(live: &[u64]) -> Option<bool> {
    let runs = live.len();
    if runs < MIN_RUNS {
        return None;
    }
    let lows = lowest_from(live);
    let rises = |quarter: usize| lows[quarter_start(quarter, runs)] < lows[quarter_start(quarter + 1, runs)];
    let last = quarter_start(3, runs);
    let most_before = live[..last].iter().copied().max().unwrap_or(0);
    let late = lows[last - 1..].windows(2).filter(|pair| pair[0] < pair[1] && pair[1] > most_before).count();
    Some((0..3).filter(|quarter| rises(*quarter)).count() >= 2 || late >= LEAST_LATE_RISES)
}

/// What twice `asked` runs say, of which the first half rose. `None` where there are fewer of them, or of [`MIN_RUNS`].
///
/// Looked at are the low points: E(t) is the smallest value from run t on, up to the begin of the last of the eight quarters.
/// G_1 and G_2 are its growth over the first three quarters of each half, in each of which the growth of one run counts for
/// ten times the median of the others at most.
/// - Growth that begins after the first half of the runs asked for is a leak if it rises in each of the last three quarters, does
///   not slow down there, and reaches beyond all that was live before it; a plateau if it does not reach so far.
/// - Growth that ended, or that rises in fewer than five of the seven steps between the quarters, is a plateau; open if it comes
///   in steps of which the last two are no smaller and no further apart than the first two.
/// - Does not slow down: no falling trend in its growth from run to run, and G_2 at least a third of G_1: a leak.
/// - Slows down: if G_2 / G_1 is a half or more, it is open; from 0.8 on a leak, unless the second half slows down by
///   itself. Else a cache that fills has a time constant of asked / ln(G_1 / G_2) runs, and its growth goes on slowing by it. If growth keeps its pace in the end, a leak was behind
///   the cache; if it slows, but less than that cache would, it is open; the rest are plateaus.
pub fn heap_trend(live: &[u64], asked: usize) -> Option<HeapTrend> {
    let live = live.get(..asked.checked_mul(2)?).filter(|_| asked >= MIN_RUNS)?;
    let lows = lowest_from(live);
    let starts: Vec<usize> = (0..8).map(|quarter| quarter / 4 * asked + quarter_start(quarter % 4, asked)).collect();
    let rise = |from: usize, to: usize| lows[starts[to]] - lows[starts[from]];
    let per_run = |from: usize, to: usize| rise(from, to) as f64 / (starts[to] - starts[from]) as f64;
    let mut growth: Vec<f64> = lows[..=starts[7]].windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let places: Vec<usize> = (0..growth.len()).filter(|place| growth[*place] > 0.0).collect();
    let goes_beyond = live[..starts[3]].iter().all(|bytes| *bytes < lows[starts[7]]);
    let lasting_steps = goes_beyond && steps_last(&growth, &places);
    cap_steps(&mut growth[..starts[3]]);
    cap_steps(&mut growth[starts[4]..]);
    let steps: Vec<u64> = (0..7).map(|quarter| rise(quarter, quarter + 1)).collect();
    Some(HeapTrend {
        growth: decide(&growth, &steps, &starts, asked, goes_beyond, lasting_steps),
        kept: rise(0, 7),
        rises: places.len(),
        last_rise_run: places.last().map_or(0, |place| place + 2),
        first_per_run: per_run(0, 3),
        per_run: per_run(4, 7),
        last_per_run: per_run(6, 7),
        runs_between_rises: growth.len() as f64 / places.len().max(1) as f64,
    })
}

/// Whether steps, at `places`, come as fast in the end as in the beginning: the last two no smaller and no further apart than the
/// first two, and not longer ago than those were apart. A table that doubles does so less and less often.
fn steps_last(growth: &[f64], places: &[usize]) -> bool {
    let &[first, second, .., last] = places else { return false };
    let before = places[places.len() - 2];
    let apart = second - first;
    let (begin, end) = (growth[first] + growth[second], growth[before] + growth[last]);
    end >= begin && last - before <= apart && growth.len() - last <= apart
}

/// `growth` from run to run, its `steps` between the quarters, and their `starts`.
fn decide(
    growth: &[f64],
    steps: &[u64],
    starts: &[usize],
    asked: usize,
    goes_beyond: bool,
    lasting_steps: bool,
) -> HeapGrowth {
    let confirming = &growth[starts[4]..];
    let (first, second): (f64, f64) = (growth[..starts[3]].iter().sum(), confirming.iter().sum());
    if steps.iter().all(|step| *step == 0) {
        return HeapGrowth::CameBack;
    }
    let rising = |steps: &[u64]| steps.iter().filter(|step| **step > 0).count();
    let begins_late = rising(&steps[..3]) < LEAST_EARLY_STEPS;
    if begins_late && goes_beyond && rising(&steps[4..]) == 3 && !slows_down(confirming) {
        return HeapGrowth::Leak;
    }
    if first == 0.0 || second == 0.0 || rising(steps) < LEAST_RISING_STEPS || (begins_late && !goes_beyond) {
        return if lasting_steps { HeapGrowth::Open } else { HeapGrowth::Plateau };
    }
    let ratio = second / first;
    if !slows_down(growth) {
        return if ratio >= LEAST_LASTING { HeapGrowth::Leak } else { HeapGrowth::Open };
    }
    if ratio >= MOST_OF_A_PLATEAU {
        let goes_on = ratio >= HARDLY_SLOWER && !slows_down(confirming);
        return if goes_on { HeapGrowth::Leak } else { HeapGrowth::Open };
    }
    if steps[6] == 0 {
        return HeapGrowth::Plateau;
    }
    let time_constant = asked as f64 / (1.0 / ratio).ln();
    let goes_on_behind = || (5..7).any(|from| keeps_its_pace(&growth[starts[from]..], time_constant, false));
    if steps[4..].iter().all(|step| *step > 0) && (keeps_its_pace(confirming, time_constant, true) || goes_on_behind())
    {
        HeapGrowth::Leak
    } else if goes_on(confirming, time_constant) {
        HeapGrowth::Open
    } else {
        HeapGrowth::Plateau
    }
}

fn cap_steps(growth: &mut [f64]) {
    let rises: Vec<f64> = growth.iter().copied().filter(|bytes| *bytes > 0.0).collect();
    if let Some(middle) = median(&rises) {
        growth.iter_mut().for_each(|bytes| *bytes = bytes.min(MOST_OF_A_STEP * middle));
    }
}

/// The smallest value from each run on: what is never given back.
fn lowest_from(live: &[u64]) -> Vec<u64> {
    let mut lows = live.to_vec();
    for at in (1..lows.len()).rev() {
        lows[at - 1] = lows[at - 1].min(lows[at]);
    }
    lows
}

/// The first run of a quarter, from 0.
fn quarter_start(quarter: usize, runs: usize) -> usize {
    (quarter * runs).div_ceil(4)
}
