//! The memory channel: what [`infergate::memory::leak`] finds, as rows of a verdict.

pub use infergate::memory::leak::MemoryPolicy;
use infergate::memory::leak::{self, Finding, Witness};

use crate::receipt::{CaseVerdict, Channel, MemoryRecord};

/// The metric of the heap's row: bytes a run.
pub const HEAP: &str = "heap_bytes_per_run";
/// The metric of the resident set's row: bytes a run.
pub const RESIDENT: &str = "rss_bytes_per_run";

/// The rows of both witnesses.
pub fn judge(record: &MemoryRecord, policy: MemoryPolicy) -> Vec<CaseVerdict> {
    leak::judge(record, policy).into_iter().map(|finding| row(record, finding)).collect()
}

fn row(record: &MemoryRecord, finding: Finding) -> CaseVerdict {
    let metric = match finding.witness {
        Witness::Heap => HEAP,
        Witness::Resident => RESIDENT,
    };
    CaseVerdict {
        head: finding.per_run_bytes,
        threshold: finding.floor_per_run_bytes,
        p_adjusted: finding.p_rising,
        smallest_leak_bytes: finding.smallest_leak_bytes,
        certain_leak_interval: finding.certain_leak_interval,
        note: finding.note,
        ..CaseVerdict::new(record.case, metric, Channel::Memory, finding.outcome)
    }
}
