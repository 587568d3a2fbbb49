//! The memory channel: what [`infergate_core::memory::leak`] finds, as rows of a verdict.

use infergate_core::memory::leak::{self, Finding};

use infergate_receipts::{Evidence, MemoryRecord, Outcome, Reason, Remedy, VerdictRow};

/// A row of each measure.
pub fn judge(record: &MemoryRecord) -> Vec<VerdictRow> {
    leak::judge(record).into_iter().map(|finding| row(record, finding)).collect()
}

fn row(record: &MemoryRecord, finding: Finding) -> VerdictRow {
    let mut row = VerdictRow::new(record.case, finding.outcome, Evidence::Memory(finding.evidence));
    row.remedy = finding.may_be_cache.then_some(Remedy::MoreRuns);
    match finding.note {
        Some(what) if finding.outcome == Outcome::Invalid => row.because(Reason::Broken { what }),
        Some(text) => row.because(Reason::Observed { text }),
        None => row,
    }
}
