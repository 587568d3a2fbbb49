//! Where a percentile or a share lies, of requests that wait for each other: batch means over time.
//!
//! Requests of one run are not independent. Their number is therefore divided by how much the mean of a batch of consecutive
//! requests varies beyond what independent ones would (batch means: Law and Kelton, Simulation Modeling and Analysis, 9.5.3), and
//! what is left is used in the order-statistic formula. `None` where a run is too short for the dependence that is seen in it.

use super::beta::beta_quantile;
use super::proportion::ends;
use super::student::student_t_quantile;
use super::{lag_1_autocorrelation, mean, sample_variance, samples_needed};

/// Batches of consecutive requests.
const BATCHES: usize = 10;
/// Neighbouring batches that correlate more than this are too short.
const MOST_BATCH_CORRELATION: f64 = 0.5;
/// A run that happens to be calm hides its dependence: the stronger neighbours depend on each other, the more requests are asked
/// for. Found by simulation of queues (cargo-infergate's tests/simulations/coverage.rs).
const CAUTION: f64 = 3.0;
/// Requests that an open loop needs beyond a percentile, on its smaller side. A calm run hides its queue, so no rule that goes by what
/// the run shows is right for all: at a load of .9, intervals of a P50 from 1,000 requests held the truth in 60 to 85 % of simulated
/// runs, from 3,000 in 90 % and more but for 38 and 39 of 45 at 4 slots (cargo-infergate's tests/simulations/coverage.rs).
const OPEN_LOOP_BEYOND: f64 = 1_500.0;
/// A correlation beyond this is not told from 1.
const MOST_CORRELATION: f64 = 0.9999;
/// The part of an interval's misses at each end.
const TAIL: f64 = 0.025;
const NORMAL: f64 = 1.959_963_984_540_054;
/// A share is asked for as many requests as a P90.
const SHARE_LIKE: f64 = 0.9;

/// One value of a request; infinite for a request that failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// The value.
    pub value: f64,
    /// What it counts: 1, or the values that a failed request would have given.
    pub weight: f64,
    /// The place of its request, from 0, in the order of starts.
    pub request: usize,
}

/// How long a queue can become.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queue {
    /// A closed loop: never more than its users, so that a calm run does not hide it.
    OfUsers,
    /// An open loop, and the correlation of [`neighbours`] by another time of the same requests: a queue shows in TTFT first.
    Unbounded(f64),
}

/// Values in the order of their size, and what each request contributes.
struct Ranked {
    sorted: Vec<Timed>,
    /// The part of the weight up to and with each of `sorted`.
    reached: Vec<f64>,
    /// Of each request: its mean rank, and its weight over the mean request's.
    ranks: Vec<f64>,
    weights: Vec<f64>,
}

impl Ranked {
    /// `None` without values, or where one is not a number or counts nothing.
    fn of(values: &[Timed]) -> Option<Self> {
        let total: f64 = values.iter().map(|timed| timed.weight).sum();
        if values.is_empty() || values.iter().any(|timed| timed.value.is_nan() || timed.weight <= 0.0) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        let requests = values.iter().map(|timed| timed.request).max()?.checked_add(1)?;
        if requests > values.len() {
            return None;
        }
        let (mut ranks, mut weights) = (vec![0.0; requests], vec![0.0; requests]);
        let (mut reached, mut below) = (Vec::with_capacity(sorted.len()), 0.0);
        for ties in sorted.chunk_by(|a, b| a.value == b.value) {
            let tied: f64 = ties.iter().map(|timed| timed.weight).sum();
            for timed in ties {
                reached.push((below + tied) / total);
                ranks[timed.request] += timed.weight * (below + tied / 2.0);
                weights[timed.request] += timed.weight;
            }
            below += tied;
        }
        ranks.iter_mut().zip(&weights).for_each(|(rank, weight)| *rank /= weight);
        weights.iter_mut().for_each(|weight| *weight *= requests as f64 / total);
        ranks.iter().all(|rank| rank.is_finite()).then_some(Self { sorted, reached, ranks, weights })
    }

    /// The smallest value that a part `p` of all is not above.
    fn at(&self, p: f64) -> f64 {
        let place = self.reached.partition_point(|reached| *reached < p);
        self.sorted[place.min(self.sorted.len() - 1)].value
    }
}

/// How much the next request is like the one before it: the correlation of neighbours' ranks, 0 to 1. 0 where there is none to
/// see.
pub fn neighbours(values: &[Timed]) -> f64 {
    Ranked::of(values).map_or(0.0, |ranked| lag_1(&ranked.ranks))
}

/// The two-sided 95 % interval of the percentile at `p`, of values in any order whose requests are numbered by their starts. Its
/// upper end is infinite where failures reach it. `None` where the run is too short.
pub fn percentile_interval(values: &[Timed], p: f64, queue: Queue) -> Option<(f64, f64)> {
    let needed = samples_needed(p)? as f64;
    let ranked = Ranked::of(values)?;
    let requests = ranked.ranks.len();
    if is_short(requests, p, queue) {
        return None;
    }
    let limit = ranked.at(p);
    let mut beyond = vec![0.0; requests];
    for timed in ranked.sorted.iter().filter(|timed| timed.value > limit) {
        beyond[timed.request] += timed.weight;
    }
    let mean_weight = ranked.sorted.iter().map(|timed| timed.weight).sum::<f64>() / requests as f64;
    let share = beyond.iter().sum::<f64>() / requests as f64 / mean_weight;
    let residuals: Vec<f64> =
        beyond.iter().zip(&ranked.weights).map(|(beyond, weight)| beyond / mean_weight - share * weight).collect();
    let left = effective(&[&ranked.ranks, &residuals], queue, needed)?;
    // Gaps of one request say more than one value would, by as much as they differ from each other.
    let spread = sample_variance(&residuals)?;
    let count = if spread > 0.0 { left * share * (1.0 - share) / spread } else { left };
    let low = beta_quantile(TAIL, p * count, (1.0 - p) * count + 1.0)?;
    let high = beta_quantile(1.0 - TAIL, p * count + 1.0, (1.0 - p) * count)?;
    Some((ranked.at(low), ranked.at(high)))
}

/// The two-sided 95 % interval of the share of `hits`, one a request in the order of starts. `None` where
/// the run is too short.
pub fn share_interval(hits: &[bool], queue: Queue) -> Option<(f64, f64)> {
    let series: Vec<f64> = hits.iter().map(|hit| f64::from(u8::from(*hit))).collect();
    if is_short(series.len(), SHARE_LIKE, queue) {
        return None;
    }
    let left = effective(&[&series], queue, samples_needed(SHARE_LIKE)? as f64)?;
    let share = series.iter().sum::<f64>() / series.len() as f64;
    ends(share * left, (1.0 - share) * left, TAIL)
}

/// The hits of a run, one a request in the order of starts, as counts of hits and requests in each of its batches. Empty where
/// the run is too short to see what its requests have to do with each other.
pub fn batches(hits: &[bool]) -> Vec<(u64, u64)> {
    if hits.len() < 2 * BATCHES {
        return Vec::new();
    }
    in_batches(hits).map(|batch| (batch.iter().filter(|hit| **hit).count() as u64, batch.len() as u64)).collect()
}

/// [`BATCHES`] of consecutive values, as long as each other but for one value.
fn in_batches<T>(series: &[T]) -> impl Iterator<Item = &[T]> {
    let begin = move |place: usize| place * series.len() / BATCHES;
    (0..BATCHES).map(move |place| &series[begin(place)..begin(place + 1)])
}

/// Whether an open loop has too few requests for the percentile at `p`, however calm it looks.
fn is_short(requests: usize, p: f64, queue: Queue) -> bool {
    // 15,000 * (1 - 0.9) is a little less than 1,500.
    const ROUNDING: f64 = 1e-6;
    queue != Queue::OfUsers && requests as f64 * p.min(1.0 - p) < OPEN_LOOP_BEYOND - ROUNDING
}

/// As many independent requests would say as much. `None` where they are fewer than `needed`.
fn effective(series: &[&[f64]], queue: Queue, needed: f64) -> Option<f64> {
    let count = series.first()?.len();
    let requests = count as f64;
    if count < 2 * BATCHES {
        // Too few to see what they have to do with each other.
        return None;
    }
    let mut correlation = match queue {
        Queue::OfUsers => 0.0,
        Queue::Unbounded(at_least) => at_least.clamp(0.0, 1.0),
    };
    let mut factor = 1.0_f64;
    for series in series {
        correlation = correlation.max(lag_1(series));
        factor = factor.max(batch_factor(series)?);
    }
    if correlation >= 1.0 {
        return None;
    }
    // A short run shows too little of it: by (1 + 3 r) / n in the mean (Kendall 1954), and by luck.
    let hidden = (1.0 + 3.0 * correlation + 2.0 * ((1.0 - correlation * correlation) * requests).sqrt()) / requests;
    let most = (correlation + hidden).min(MOST_CORRELATION);
    let asked_of = (1.0 + most) / (1.0 - most) * (1.0 + CAUTION * most);
    let of_neighbours = (1.0 + correlation) / (1.0 - correlation);
    // The factor is itself from few batches.
    let student = (student_t_quantile(1.0 - TAIL, (BATCHES - 1) as f64)? / NORMAL).powi(2);
    let asked = requests / (asked_of * student);
    let left = requests / (factor.max(of_neighbours) * student);
    let enough = if queue == Queue::OfUsers { left } else { asked.min(left) };
    (enough >= needed).then_some(left)
}

/// How much more the mean of a batch varies than that of as many independent values. `None` where batches still depend on each
/// other.
fn batch_factor(series: &[f64]) -> Option<f64> {
    let means: Vec<f64> = in_batches(series).map(mean).collect::<Option<_>>()?;
    let (of_means, of_all) = (sample_variance(&means)?, sample_variance(series)?);
    if of_all <= 0.0 || of_means <= 0.0 {
        return Some(1.0);
    }
    let seen = lag_1_autocorrelation(&means)?;
    if seen > MOST_BATCH_CORRELATION {
        return None;
    }
    // The estimate is too low by (1 + 3 r) / n in the mean (Kendall 1954).
    let r = (seen + (1.0 + 3.0 * seen) / BATCHES as f64).clamp(0.0, 0.9);
    Some(of_means * series.len() as f64 / BATCHES as f64 / of_all * (1.0 + r) / (1.0 - r))
}

fn lag_1(series: &[f64]) -> f64 {
    lag_1_autocorrelation(series).unwrap_or(0.0).clamp(0.0, 1.0)
}
