//! Times of a case that runs nothing of what changed.
//!
//! Where the processes of a case were watched, and not one of the functions that differ between base and head began in them, what
//! differs in time is where the linker put the code, however sure it is: it is called *layout*, shown, and does not fail. Anything
//! that says that the sides did different work takes that back: other output, other counters.

use super::super::exact;
use crate::receipt::{Against, CodeRuns, CountedCase, Outcome, OutputComparison, PairedReceipt, Reason, VerdictRow};
use infergate_core::case::Case;

/// Whether it is worth watching what a case runs: its time differs, or could not be decided.
pub fn asks(row: &VerdictRow) -> bool {
    let differs = matches!(row.outcome, Outcome::Regressed | Outcome::Improved) || row.outcome.is_undecided();
    differs && row.time().is_some_and(|time| time.against == Against::Base)
}

/// The row of a time with what was seen of its case.
pub fn weigh(receipt: &PairedReceipt, row: VerdictRow) -> VerdictRow {
    let runs = receipt.code.as_ref().zip(row.subject.case());
    let runs = runs.and_then(|(code, case)| {
        let runs = code.runs.iter().find(|runs| runs.id == case)?;
        Some((runs.changed.or(code.changed)?, runs))
    });
    let Some((changed, CodeRuns { id, functions, named, why, .. })) = runs.filter(|_| asks(&row)) else { return row };
    // Stalls that move the mean beyond the median can come from what seldom runs.
    let is_stall = row.reasons.contains(&Reason::SomeSlower);
    match functions {
        Some(0) if !is_stall && is_same_work(receipt, *id) => VerdictRow {
            outcome: Outcome::Layout,
            reasons: vec![Reason::RunsNothingChanged { changed }],
            remedy: None,
            ..row
        },
        Some(0) => row,
        Some(functions) => row.because(Reason::RunsChanged { functions: *functions, changed, named: named.clone() }),
        None => row.because(Reason::NotWatched { why: why.clone().unwrap_or_default() }),
    }
}

/// Nothing that was counted or said differs.
fn is_same_work(receipt: &PairedReceipt, id: Case) -> bool {
    let counted =
        |counted: &[CountedCase]| counted.iter().find(|counted| counted.id == id).map(|found| found.counters.clone());
    let Some(case) = receipt.cases.iter().find(|case| case.id == id) else { return false };
    let output = exact::compare_outputs(&case.base_output, &case.head_output, 0.0).comparison;
    matches!(output, OutputComparison::Same | OutputComparison::NotGiven | OutputComparison::Unknown)
        && counted(&receipt.base.counted) == counted(&receipt.head.counted)
        && receipt.invalid.is_empty()
        && !receipt.partial
}
