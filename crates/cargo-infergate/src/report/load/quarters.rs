//! What happened in each quarter of a level's measured requests, in the order of their starts: whether a run was the same from its begin to its end.

use infergate_core::load::RequestRecord;

use super::metric::Metric;
use crate::load::summary::{counted_requests, e2e_ns, tpot_ns, ttft_ns};
use crate::load::values::Values;
use crate::receipt::LevelRecord;

/// Parts of the requests that are compared with each other.
pub const QUARTERS: usize = 4;
/// What is followed over the run.
pub const FOLLOWED: [Metric; 3] = [Metric::Ttft, Metric::DecodeSpeed, Metric::E2e];

/// A quarter of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quarter {
    /// Its requests.
    pub started: usize,
    /// Of these, failed.
    pub failed: usize,
    /// The median of each of [`FOLLOWED`].
    pub p50: [Option<f64>; FOLLOWED.len()],
    /// The requests behind each of them.
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
    let completed: Vec<&RequestRecord> = records.iter().copied().filter(|record| record.failure.is_none()).collect();
    let found = FOLLOWED.map(|metric| {
        let worst = if metric.more_is_better() { 0.0 } else { f64::INFINITY };
        let values = Values::of(records, worst, |record| value(metric, record).into_iter().collect());
        (values.at(0.5), values.requests)
    });
    Quarter {
        started: records.len(),
        failed: records.len() - completed.len(),
        p50: found.map(|(p50, _)| p50),
        requests: found.map(|(_, requests)| requests),
    }
}

/// The value of one request; `None` where it has none, and for what is no number of a request.
fn value(metric: Metric, record: &RequestRecord) -> Option<f64> {
    match metric {
        Metric::Ttft => ttft_ns(record),
        Metric::E2e => e2e_ns(record),
        Metric::Tpot => tpot_ns(record),
        Metric::DecodeSpeed => tpot_ns(record).filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns),
        Metric::Itl | Metric::OutputThroughput => None,
    }
}
