//! The heap's rule. What is counted has no noise, but it may swing: caches fill and are emptied, buffers alternate.

use super::MIN_RUNS;

/// How a counted series moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeapTrend {
    /// Whether even its low points rise, and do not slow down.
    pub leaks: bool,
    /// Rise of the low points, per run.
    pub per_run: f64,
}

/// The trend of what was live after each run (bytes or blocks); `None` below [`MIN_RUNS`].
///
/// With e_k the smallest value from the k-th quarter on, a leak is three steps e_1 - e_0, e_2 - e_1, e_3 - e_2 that are all
/// above zero, the last at least a third of the largest: a warm-up slows down, a leak goes on or accelerates. Whatever comes
/// back to its low point once in a quarter of the runs, or rises only once, makes a step of zero. The rate is
/// (e_3 - e_0) / (3 n / 4).
pub fn heap_trend(live: &[u64]) -> Option<HeapTrend> {
    let runs = live.len();
    if runs < MIN_RUNS {
        return None;
    }
    let low_from = |quarter: usize| live[quarter_start(quarter, runs)..].iter().min().copied().unwrap_or(0);
    let lows = [0, 1, 2, 3].map(low_from);
    // From a later quarter on there are fewer values to be the smallest: the lows never fall.
    let steps = [lows[1] - lows[0], lows[2] - lows[1], lows[3] - lows[2]];
    let rises = steps.iter().all(|step| *step > 0);
    let largest = steps.into_iter().max().unwrap_or(0);
    let per_run = (lows[3] - lows[0]) as f64 / (3.0 * runs as f64 / 4.0);
    Some(HeapTrend { leaks: rises && 3 * u128::from(steps[2]) >= u128::from(largest), per_run })
}

/// The largest k for which a leak of one size in each k-th run is certain to be called, whichever run it starts in. `None`
/// below [`MIN_RUNS`].
///
/// Each step needs such a run among its own, so k is the length of the shortest step. Steps differ by one run at most, and
/// the number of such runs in them by one too: the last is then at least half of the largest.
pub fn certain_leak_interval(runs: usize) -> Option<usize> {
    let starts = [0, 1, 2, 3].map(|quarter| quarter_start(quarter, runs));
    (runs >= MIN_RUNS).then(|| starts.windows(2).map(|pair| pair[1] - pair[0]).min()).flatten()
}

/// The first run of a quarter, from 0.
fn quarter_start(quarter: usize, runs: usize) -> usize {
    (quarter * runs).div_ceil(4)
}
