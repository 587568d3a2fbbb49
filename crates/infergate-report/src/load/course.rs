//! How a level went over its time: what happened in each quarter of its measured requests, and for which part a target answered.

use infergate_core::load::{Arrivals, FailureClass, RequestRecord};

use infergate_load::summary::counted_requests;
use infergate_load::summary::values::Values;
use infergate_receipts::LevelRecord;
use infergate_receipts::Metric;

/// Parts of the requests, in the order of their starts, that are compared with each other.
pub const QUARTERS: usize = 4;
/// What is followed over the run.
pub const FOLLOWED: [Metric; 3] = [Metric::Ttft, Metric::DecodeSpeed, Metric::E2e];

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quarter {
    pub started: usize,
    pub failed: usize,
    /// The median of each of [`FOLLOWED`].
    pub p50: [Option<f64>; FOLLOWED.len()],
    pub requests: [usize; FOLLOWED.len()],
}

/// Each quarter, of one target or of all; empty where nothing was measured.
pub fn quarters(level: &LevelRecord, target: Option<u32>) -> Vec<Quarter> {
    let mut counted = counted_requests(level, None);
    counted.sort_by_key(|record| record.scheduled_ns);
    let mut started: [Vec<&RequestRecord>; QUARTERS] = Default::default();
    for (place, record) in counted.iter().enumerate() {
        if target.is_none_or(|target| record.target == target) {
            started[place * QUARTERS / counted.len()].push(record);
        }
    }
    if counted.is_empty() { Vec::new() } else { started.iter().map(|records| quarter(records)).collect() }
}

fn quarter(records: &[&RequestRecord]) -> Quarter {
    let completed = records.iter().filter(|record| record.failure.is_none()).count();
    let found = FOLLOWED.map(|metric| {
        let worst = if metric.is_rate() { 0.0 } else { f64::INFINITY };
        let values = Values::of(records, worst, |record| metric.value(record).into_iter().collect());
        (values.at(0.5), values.requests)
    });
    Quarter {
        started: records.len(),
        failed: records.len() - completed,
        p50: found.map(|(p50, _)| p50),
        requests: found.map(|(_, requests)| requests),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uptime {
    /// From each start of a request that failed to the next start of one that was answered, or to the last end, without the time
    /// in which one that was answered was under way. So it does not matter how soon a request fails. At a rate nobody waits behind
    /// the last one that failed, and it ends with that. Those that were given up when the run ended say nothing.
    pub down_ns: u64,
    /// From the first start to the last end.
    pub all_ns: u64,
}

impl Uptime {
    /// The part of the time in which it answered.
    pub fn share(self) -> f64 {
        1.0 - self.down_ns as f64 / self.all_ns as f64
    }
}

/// Of a level's requests; `None` where they took no time.
pub fn uptime(level: &LevelRecord) -> Option<Uptime> {
    let is_given_up = |record: &RequestRecord| {
        record.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Cancelled)
    };
    let its: Vec<&RequestRecord> = level.requests.iter().filter(|record| !is_given_up(record)).collect();
    let from_ns = its.iter().map(|record| record.scheduled_ns).min()?;
    let to_ns = its.iter().map(|record| record.ended_ns).max()?;
    let (failed, answered): (Vec<&RequestRecord>, Vec<&RequestRecord>) =
        its.into_iter().partition(|record| record.failure.is_some());
    let mut answered: Vec<(u64, u64)> =
        answered.into_iter().map(|record| (record.scheduled_ns, record.ended_ns)).collect();
    answered.sort_unstable();
    let is_closed = matches!(level.arrivals, Arrivals::Closed { .. });
    let mut failed_ns: Vec<u64> = failed.iter().map(|record| record.scheduled_ns).collect();
    failed_ns.sort_unstable();
    let until_answered = |record: &RequestRecord| {
        let next = answered.partition_point(|(start_ns, _)| *start_ns < record.scheduled_ns);
        let answered_ns = answered.get(next).map_or(to_ns, |(start_ns, _)| *start_ns);
        let further = failed_ns.get(failed_ns.partition_point(|start_ns| *start_ns <= record.scheduled_ns));
        let further_ns = further.filter(|start_ns| **start_ns < answered_ns);
        let asked_ns = further_ns.copied().unwrap_or(0).max(record.ended_ns);
        (record.scheduled_ns, if is_closed { answered_ns } else { answered_ns.min(asked_ns) })
    };
    let all = failed.into_iter().map(until_answered).chain(answered.iter().copied()).collect();
    let down_ns = covered_ns(all).saturating_sub(covered_ns(answered));
    (to_ns > from_ns).then_some(Uptime { down_ns, all_ns: to_ns.saturating_sub(from_ns) })
}

fn covered_ns(mut times: Vec<(u64, u64)>) -> u64 {
    times.sort_unstable();
    let (mut covered, mut until_ns) = (0_u64, 0_u64);
    for (from_ns, to_ns) in times {
        covered = covered.saturating_add(to_ns.saturating_sub(from_ns.max(until_ns)));
        until_ns = until_ns.max(to_ns);
    }
    covered
}
