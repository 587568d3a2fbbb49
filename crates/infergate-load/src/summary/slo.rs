//! Limits on latency: which requests and levels keep to them. Pure.

use infergate_core::load::RequestRecord;
use infergate_core::stats::share_interval;
use infergate_core::trace::per_second;

use crate::receipt::{LevelRecord, Limit};
use crate::summary::{LevelSummary, by_start, is_given_up};

/// Requests of a level that met every limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    /// So many did, and ended in the window.
    pub good: u64,
    /// Of so many that ended in it, failed ones included.
    pub all: u64,
    /// Good requests per second of the window.
    pub requests_per_s: f64,
    /// Its 95 % interval: that of the share by batch means, times the rate of all that ended. `None` where requests are too few for
    /// how much they depend on each other.
    pub within: Option<(f64, f64)>,
}

/// Whether a level meets every limit of a percentile, failed requests counted as infinitely slow: the upper ends of their 95 %
/// intervals are within the limits. `Some(false)`: a percentile itself is above its limit. `None`: the requests are too few to
/// show either.
pub fn meets(summary: &LevelSummary, limits: &[Limit]) -> Option<bool> {
    let queue = summary.queue();
    let each = limits.iter().map(|limit| {
        let (values, p, most) = (summary.values(limit.metric), limit.percentile.unwrap_or(0.5), limit.limit_ns as f64);
        if values.with_failures(p)? > most {
            return Some(false);
        }
        values.within(p, queue).is_some_and(|(_, high)| high <= most).then_some(true)
    });
    let each: Vec<Option<bool>> = each.collect();
    if each.contains(&Some(false)) { Some(false) } else { (!each.contains(&None)).then_some(true) }
}

/// The level's goodput: the requests that ended in the window, but for those that were given up. `None` where none did.
pub fn goodput(level: &LevelRecord, summary: &LevelSummary, limits: &[Limit]) -> Option<Goodput> {
    let window = summary.window?;
    // A request that has no such time (a single token has no gap) keeps to a limit of it.
    let is_good = |record: &RequestRecord| {
        let keeps_to = |limit: &Limit| limit.metric.of(record).into_iter().all(|ns| ns <= limit.limit_ns as f64);
        record.failure.is_none() && limits.iter().all(keeps_to)
    };
    let mut ended = by_start(level, None);
    ended.retain(|record| window.from_ns < record.ended_ns && record.ended_ns <= window.to_ns && !is_given_up(record));
    let hits: Vec<bool> = ended.into_iter().map(is_good).collect();
    let (good, all) = (hits.iter().filter(|hit| **hit).count() as u64, hits.len() as u64);
    let per_s = per_second(all as f64, (window.to_ns - window.from_ns) as f64)?;
    let within = share_interval(&hits, summary.queue()).map(|(low, high)| (low * per_s, high * per_s));
    (all > 0).then(|| Goodput { good, all, requests_per_s: good as f64 / all as f64 * per_s, within })
}
