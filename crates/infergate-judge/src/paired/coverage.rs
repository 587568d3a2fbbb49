//! Adds to a time's row how much changed code its case runs.

use infergate_receipts::{CodeRuns, Outcome, PairedReceipt, Reason, VerdictRow};

/// The row, with the changed functions that its case runs as a reason, if its time differs or is not decided.
pub fn add_coverage_reason(receipt: &PairedReceipt, row: VerdictRow) -> VerdictRow {
    let differs = matches!(row.outcome, Outcome::Regressed | Outcome::Improved) || row.outcome.is_undecided();
    let runs = receipt.code.as_ref().zip(row.subject.case()).filter(|_| differs && row.time().is_some());
    let runs = runs.and_then(|(code, case)| {
        let runs = code.runs.iter().find(|runs| runs.id == case)?;
        Some((runs.changed.or(code.changed)?, runs))
    });
    match runs {
        Some((changed, CodeRuns { functions: Some(functions), named, .. })) => {
            row.because(Reason::RunsChanged { functions: *functions, changed, named: named.clone() })
        }
        Some((_, CodeRuns { why, .. })) => row.because(Reason::NotWatched { why: why.clone().unwrap_or_default() }),
        None => row,
    }
}
