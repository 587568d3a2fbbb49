//! What happened in each quarter of the time in which a level's measured requests started: whether a run was the same from its begin to its end.

use infergate::load::RequestRecord;

use super::metric::Metric;
use crate::load::summary::{counted_requests, e2e_ns, tpot_ns, ttft_ns};
use crate::load::values::Values;
use crate::receipt::LevelRecord;

/// Parts of this time that are compared with each other.
pub const QUARTERS: usize = 4;
/// What is followed over the run.
pub const FOLLOWED: [Metric; 3] = [Metric::Ttft, Metric::DecodeSpeed, Metric::E2e];

/// A quarter of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quarter {
    /// Measured requests that started in it.
    pub started: usize,
    /// Of these, failed.
    pub failed: usize,
    /// The median of each of [`FOLLOWED`].
    pub p50: [Option<f64>; FOLLOWED.len()],
    /// The requests behind each of them.
    pub requests: [usize; FOLLOWED.len()],
}

/// What started in each quarter, of one target or of all; empty where nothing was measured.
pub fn quarters(level: &LevelRecord, target: Option<u32>) -> Vec<Quarter> {
    let starts = || counted_requests(level, None).into_iter().map(|record| record.scheduled_ns);
    let (Some(from_ns), Some(to_ns)) = (starts().min(), starts().max()) else { return Vec::new() };
    let length = (to_ns - from_ns).max(1) as f64;
    let mut started: [Vec<&RequestRecord>; QUARTERS] = Default::default();
    for record in counted_requests(level, target) {
        let at = (record.scheduled_ns - from_ns) as f64 / length * QUARTERS as f64;
        started[(at as usize).min(QUARTERS - 1)].push(record);
    }
    started.iter().map(|records| quarter(records)).collect()
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
