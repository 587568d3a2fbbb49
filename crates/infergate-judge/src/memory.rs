//! The memory channel: what [`infergate_core::memory::leak`] finds, as rows of a verdict.

use infergate_core::memory::leak::{self, Finding};

use infergate_receipts::{Evidence, MemoryEvidence, MemoryRecord, Outcome, Reason, Remedy, VerdictRow};

/// A row of each measure.
pub fn judge(record: &MemoryRecord) -> Vec<VerdictRow> {
    leak::judge(record).into_iter().map(|finding| row(record, finding)).collect()
}

fn row(record: &MemoryRecord, finding: Finding) -> VerdictRow {
    let evidence = Evidence::Memory(MemoryEvidence {
        measure: finding.measure,
        runs: Some(record.runs.len()),
        slope_bytes: finding.per_run_bytes,
        count_per_run: finding.count_per_run,
        floor_bytes: finding.floor_per_run_bytes,
        p_rising: finding.p_rising,
        smallest_leak_bytes: finding.smallest_leak_bytes,
        kept_bytes: finding.kept_bytes,
    });
    let mut row = VerdictRow::new(record.case, finding.outcome, evidence);
    row.remedy = finding.may_be_cache.then_some(Remedy::MoreRuns);
    match finding.note {
        Some(what) if finding.outcome == Outcome::Invalid => row.because(Reason::Broken { what }),
        Some(text) => row.because(Reason::Observed { text }),
        None => row,
    }
}
