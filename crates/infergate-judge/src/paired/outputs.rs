//! Outputs, compared before any time: of cases, and of prompts whose length no case has.

use crate::Policy;
use crate::output::{self, OutputRule, default_tolerance};
use infergate_receipts::{
    Evidence, Note, OtherLength, Outcome, Output, OutputComparison, PairedCase, PairedReceipt, Remedy, VerdictRow,
};

/// A row of each case, those of other lengths that decide something, and how all other lengths compare.
pub(super) fn judge(receipt: &PairedReceipt, policy: &Policy) -> (Vec<VerdictRow>, Option<Note>) {
    let tolerance = policy.drift_tolerance.unwrap_or_else(|| default_tolerance(&receipt.base.engine));
    let remedy = if receipt.terms.is_some() { Remedy::AcceptOutput } else { Remedy::AllowOutputChange };
    let row = |id, base: &Output, head: &Output, is_same_code, is_untimed| {
        let is_allowed = policy.allow_output_change;
        let row = output::row(
            id,
            base,
            head,
            &OutputRule { tolerance, is_allowed, is_same_code, is_untimed, ..OutputRule::default() },
        );
        if row.outcome == Outcome::OutputChanged { row.with_remedy(remedy.clone()) } else { row }
    };
    let of_case = |case: &PairedCase| {
        let is_same_code = receipt.is_same_code_of(case.id);
        row(case.id, &case.base_output, &case.head_output, is_same_code, !case.timed && !is_same_code)
    };
    let of_length =
        |length: &OtherLength| row(length.id, &length.base_output, &length.head_output, receipt.is_same_code(), false);
    let mut rows: Vec<VerdictRow> = receipt.cases.iter().map(of_case).collect();
    let lengths: Vec<VerdictRow> = receipt.other_lengths.iter().map(of_length).collect();
    let note = note(&lengths);
    // If every case's output changed, too, it is one change.
    if !rows.iter().all(is_changed) {
        rows.extend(deciding(lengths));
    }
    (rows, note)
}

/// The other lengths that decide: each that neither passes nor drifted, so that it can be accepted by itself, or else the one that drifted
/// furthest.
fn deciding(lengths: Vec<VerdictRow>) -> Vec<VerdictRow> {
    let differ = lengths.into_iter().filter(|row| row.outcome != Outcome::Pass);
    let (drifted, others): (Vec<_>, Vec<_>) = differ.partition(|row| row.outcome == Outcome::Drifted);
    let furthest = drifted.into_iter().rev().max_by(|a, b| drift(a).total_cmp(&drift(b)));
    if others.is_empty() { furthest.into_iter().collect() } else { others }
}

fn is_changed(row: &VerdictRow) -> bool {
    matches!(&row.evidence, Evidence::Output(output) if output.comparison == OutputComparison::Changed)
}

/// How far the output of a row drifted.
fn drift(row: &VerdictRow) -> f64 {
    if let Evidence::Output(output) = &row.evidence { output.relative_drift.unwrap_or(0.0) } else { 0.0 }
}

/// `output at other prompt lengths, untimed: same at 2, 37, 101; drifted at 333 tokens`.
fn note(lengths: &[VerdictRow]) -> Option<Note> {
    let word = |row: &VerdictRow| match row.outcome {
        Outcome::Pass => "same",
        Outcome::Drifted => "drifted",
        _ => "not the same",
    };
    let part = |wanted: &&str| {
        let of_word = lengths.iter().filter(|row| word(row) == *wanted).filter_map(|row| row.subject.case());
        let tokens: Vec<String> = of_word.map(|case| case.prompt_tokens().to_string()).collect();
        (!tokens.is_empty()).then(|| format!("{wanted} at {}", tokens.join(", ")))
    };
    let parts: Vec<String> = ["same", "drifted", "not the same"].iter().filter_map(part).collect();
    let text = format!("output at other prompt lengths, untimed: {} tokens", parts.join("; "));
    (!parts.is_empty()).then(|| Note::from(text))
}
