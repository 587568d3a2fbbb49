//! Outputs, which are compared before any time is.

use super::policy::PairedPolicy;
use crate::exact;
use infergate_core::case::Case;
use infergate_receipts::{Evidence, Outcome, OutputComparison, OutputEvidence, PairedCase, Reason, Remedy, VerdictRow};

pub(super) fn output(case: &PairedCase, policy: &PairedPolicy, tolerance: f64, same_code: bool) -> VerdictRow {
    let mut found = exact::compare_outputs(&case.base_output, &case.head_output, tolerance);
    if !same_code && !case.timed && found.comparison == OutputComparison::Drifted {
        // Its time was not taken because of a stricter tolerance, and must not pass unseen.
        found.comparison = OutputComparison::Changed;
    }
    judge_output(case.id, found, exact::other_prompt(&case.base_output, &case.head_output), policy, same_code)
}

/// The row of outputs that were compared.
pub(super) fn judge_output(
    id: Case,
    found: OutputEvidence,
    other_prompt: bool,
    policy: &PairedPolicy,
    same_code: bool,
) -> VerdictRow {
    let outcome = match found.comparison {
        OutputComparison::Changed if policy.allow_output_change => Outcome::Advisory,
        OutputComparison::Changed if other_prompt => Outcome::NotComparable,
        OutputComparison::Changed => Outcome::OutputChanged,
        OutputComparison::Drifted | OutputComparison::Same if found.lost_positions > 0 && !same_code => {
            if policy.allow_output_change { Outcome::Advisory } else { Outcome::Inconclusive }
        }
        OutputComparison::Drifted => Outcome::Drifted,
        OutputComparison::Same | OutputComparison::NotGiven | OutputComparison::Unknown => Outcome::Pass,
    };
    let row = VerdictRow::new(id, outcome, Evidence::Output(found));
    match outcome {
        Outcome::Advisory => row.because(Reason::Allowed),
        Outcome::NotComparable => row.because(Reason::OtherPrompt),
        Outcome::Inconclusive => row.because(Reason::LogitsLost),
        Outcome::OutputChanged => row.mended_by(Remedy::AllowOutputChange),
        _ => row,
    }
}
