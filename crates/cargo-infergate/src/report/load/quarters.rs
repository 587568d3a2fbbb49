//! What happened in each quarter of a level's measured requests, in the order of their starts: whether a run was the same from its begin to its end.

use infergate_core::load::RequestRecord;

use crate::load::summary::counted_requests;
use crate::load::values::Values;
use crate::receipt::LevelRecord;
use crate::receipt::Metric;

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
        let values = Values::of_metric(records, metric);
        (values.at(0.5), values.requests)
    });
    Quarter {
        started: records.len(),
        failed: records.len() - completed.len(),
        p50: found.map(|(p50, _)| p50),
        requests: found.map(|(_, requests)| requests),
    }
}
