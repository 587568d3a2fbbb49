//! For which part of a level a target answered.

use infergate_core::load::{FailureClass, RequestRecord};

use crate::receipt::LevelRecord;

/// When a target answered nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uptime {
    /// How long every request under way was one that failed; those that were given up when the run ended say nothing.
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

/// Of a level's requests, of one target or of all; `None` where they took no time.
pub fn uptime(level: &LevelRecord, target: Option<u32>) -> Option<Uptime> {
    let is_given_up = |record: &RequestRecord| {
        record.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Cancelled)
    };
    let its = level.requests.iter().filter(|record| target.is_none_or(|target| record.target == target));
    let its: Vec<&RequestRecord> = its.filter(|record| !is_given_up(record)).collect();
    let from_ns = its.iter().map(|record| record.scheduled_ns).min()?;
    let to_ns = its.iter().map(|record| record.ended_ns).max()?;
    let time = |record: &&RequestRecord| (record.scheduled_ns, record.ended_ns);
    let answered = covered_ns(its.iter().filter(|record| record.failure.is_none()).map(time).collect());
    let down_ns = covered_ns(its.iter().map(time).collect()).saturating_sub(answered);
    (to_ns > from_ns).then_some(Uptime { down_ns, all_ns: to_ns.saturating_sub(from_ns) })
}

/// How long any of these lasted.
fn covered_ns(mut times: Vec<(u64, u64)>) -> u64 {
    times.sort_unstable();
    let (mut covered, mut until_ns) = (0_u64, 0_u64);
    for (from_ns, to_ns) in times {
        covered = covered.saturating_add(to_ns.saturating_sub(from_ns.max(until_ns)));
        until_ns = until_ns.max(to_ns);
    }
    covered
}
