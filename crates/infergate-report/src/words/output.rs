//! How an output compares, in words.

use infergate_core::case::Phase;

use crate::units;
use infergate_judge::output::VOCABULARY_TOLERANCES;
use infergate_receipts::{Outcome, OutputComparison, OutputEvidence, Reason, VerdictRow};

/// How the output compares, in a word: `same`.
pub fn output(row: &VerdictRow, output: &OutputEvidence) -> &'static str {
    match (output.comparison, row.outcome) {
        (_, Outcome::Invalid) => "invalid",
        (OutputComparison::Same, _) => "same",
        (OutputComparison::NotGiven, _) => "not given",
        (OutputComparison::Drifted, _) => "drifted",
        (OutputComparison::Changed, Outcome::Accepted) => "accepted",
        (OutputComparison::Changed, Outcome::Advisory) if row.reasons.contains(&Reason::Allowed) => "allowed",
        (OutputComparison::Changed, Outcome::Advisory) if output.position.is_none() => "drifted",
        (OutputComparison::Changed, Outcome::Advisory) => "near tie",
        (OutputComparison::Changed, _) => "changed",
        (OutputComparison::Unknown, _) => "new",
    }
}

/// By how much the numbers behind an output moved, and by how much they may: `logits differ by 0.41 % of the largest (0.0001 % is
/// rounding)`. `None` where they are not known.
fn logits(output: &OutputEvidence) -> Option<String> {
    if let Some((base, head)) = output.other_logits {
        return Some(format!("head gives {head} finite logits for each token and base {base}"));
    }
    let Some((drift, tolerance)) = output.relative_drift.zip(output.drift_tolerance) else {
        return output.max_abs_logit_delta.map(|delta| format!("logits differ by {delta:.1e}"));
    };
    let all_tolerance = VOCABULARY_TOLERANCES * tolerance;
    let (which, drift, tolerance) = match output.vocabulary_drift {
        Some(all) if drift <= tolerance && (all > all_tolerance || drift == 0.0) => {
            (" other than the best", all, all_tolerance)
        }
        _ => ("", drift, tolerance),
    };
    let (drift, tolerance) = (units::percent(drift), units::percent(tolerance));
    Some(format!("logits{which} differ by {drift} of the largest (tolerance {tolerance})"))
}

/// Where and by how much the output of a row differs; `None` where it does not.
pub fn differs(row: &VerdictRow, output: &OutputEvidence) -> Option<String> {
    let beyond = output.comparison == OutputComparison::Changed && output.position.is_none();
    if beyond || output.comparison == OutputComparison::Drifted {
        return Some(logits(output).unwrap_or_else(|| "logits differ".into()));
    }
    let position = output.position?;
    // Its tokens are those of a hash.
    if row.subject.case().is_some_and(|case| case.phase() == Phase::Bench) {
        return Some("returns something else".into());
    }
    let id = |id: Option<u32>| id.map_or_else(|| "none".into(), |id| id.to_string());
    Some(format!("output token {} has id {} instead of {}", position + 1, id(output.head_id), id(output.base_id)))
}
