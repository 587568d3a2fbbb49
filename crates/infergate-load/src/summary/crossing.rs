//! Which of two targets is faster for an answer of n tokens: `TTFT + (n - 1) * TPOT` of both are lines, and lines may cross. Pure.

use infergate_core::metric::Metric;
use infergate_core::stats::quantile;

use crate::summary::LevelSummary;
use crate::summary::values::at_place;

const RESAMPLES: usize = 1_000;
/// Stretches of a run that a resample has.
const STRETCHES: usize = 10;
/// The share of resamples in which the same target has to be the first, or no crossing is claimed.
const AGREED: f64 = 0.95;

/// Which of two is faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Faster {
    /// One of them for every length: the first (`true`) or the second.
    Always(bool),
    /// One of them up to a length, the other from there on.
    UpTo {
        /// The first one is the faster for short answers.
        first: bool,
        /// The length, tokens.
        tokens: f64,
        /// Of 95 %, by resampling stretches of the run; `None` where resamples do not agree that there is a crossing.
        interval: Option<(f64, f64)>,
    },
}

/// Compares the medians of both. `None` where one has none.
pub fn compare(first: &LevelSummary, second: &LevelSummary, seed: u64) -> Option<Faster> {
    let p50 = |summary: &LevelSummary, metric| summary.values(metric).at(0.5);
    let line = |summary| Some((p50(summary, Metric::Ttft)?, p50(summary, Metric::Tpot)?));
    let found = crossing(line(first)?, line(second)?);
    let Faster::UpTo { first: first_is_short, tokens, .. } = found else { return Some(found) };
    let mut random = fastrand::Rng::with_seed(seed);
    // A resample in which a median falls among requests that failed has no crossing.
    let both = [Metric::Ttft, Metric::Tpot];
    let series = [first, second].map(|summary| both.map(|metric| summary.values(metric).in_order()));
    let mut drawn = |values: &[f64]| {
        let middle = values.len().checked_sub(1)? as f64 / 2.0;
        Some(at_place(stretches(values, &mut random), middle)).filter(|median| median.is_finite())
    };
    let mut crossings = Vec::new();
    for _ in 0..RESAMPLES {
        let lines = series.each_ref().map(|[ttft_ns, tpot_ns]| Some((drawn(ttft_ns)?, drawn(tpot_ns)?)));
        if let [Some(one), Some(other)] = lines
            && let Faster::UpTo { first, tokens, .. } = crossing(one, other)
            && first == first_is_short
        {
            crossings.push(tokens);
        }
    }
    let agreed = crossings.len() as f64 >= AGREED * RESAMPLES as f64;
    let interval = quantile(&crossings, 0.025).zip(quantile(&crossings, 0.975)).filter(|_| agreed);
    Some(Faster::UpTo { first: first_is_short, tokens, interval })
}

/// As many values again, of requests that failed, too, in stretches of consecutive requests from anywhere in the run, whose end goes on at its begin: requests
/// wait for each other, and single ones would not show it (circular block bootstrap, Politis and Romano 1992).
fn stretches(values: &[f64], random: &mut fastrand::Rng) -> Vec<f64> {
    let length = values.len().div_ceil(STRETCHES).max(1);
    let mut drawn = Vec::with_capacity(values.len() + length);
    while drawn.len() < values.len() {
        let from = random.usize(..values.len());
        drawn.extend(values.iter().cycle().skip(from).take(length));
    }
    drawn.truncate(values.len());
    drawn
}

/// Of two lines, each its value at the first token and its slope.
fn crossing((start_a, slope_a): (f64, f64), (start_b, slope_b): (f64, f64)) -> Faster {
    let tokens = 1.0 + (start_b - start_a) / (slope_a - slope_b);
    if tokens.is_finite() && tokens > 1.0 {
        Faster::UpTo { first: start_a < start_b, tokens, interval: None }
    } else {
        // Behind the first token the order does not change.
        Faster::Always(start_a + slope_a <= start_b + slope_b)
    }
}
