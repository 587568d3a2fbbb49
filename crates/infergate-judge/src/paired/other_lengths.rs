//! Outputs of prompts whose length no case has, judged as those of cases.

use super::outputs::judge_output;
use super::policy::PairedPolicy;
use crate::exact;
use infergate_receipts::{
    Evidence, Note, OtherLength, Outcome, OutputComparison, OutputEvidence, PairedReceipt, VerdictRow,
};

/// What there is to say of other lengths.
pub(super) struct Lengths {
    /// Each that neither passes nor drifted, so that it can be accepted by itself, or else the one that drifted furthest. None where
    /// every case's output changed, too: it is one change then.
    pub rows: Vec<VerdictRow>,
    /// How each compares.
    pub note: Option<Note>,
}

/// Judges other lengths beside the rows of the cases' outputs.
pub(super) fn judge(receipt: &PairedReceipt, cases: &[VerdictRow], policy: &PairedPolicy, tolerance: f64) -> Lengths {
    let judged = |length: &OtherLength| {
        let (was, is) = (&length.base_output, &length.head_output);
        let found = exact::compare_outputs(was, is, tolerance);
        judge_output(length.id, found, exact::other_prompt(was, is), policy, receipt.is_same_code())
    };
    let rows: Vec<VerdictRow> = receipt.other_lengths.iter().map(judged).collect();
    let note = note(&rows);
    if cases.iter().all(is_changed) {
        return Lengths { rows: Vec::new(), note };
    }
    let (drifted, others): (Vec<_>, Vec<_>) =
        rows.into_iter().filter(|row| row.outcome != Outcome::Pass).partition(|row| row.outcome == Outcome::Drifted);
    let furthest = drifted.into_iter().rev().max_by(|a, b| drift(a).total_cmp(&drift(b)));
    let rows = if others.is_empty() { furthest.into_iter().collect() } else { others };
    Lengths { rows, note }
}

fn is_changed(row: &VerdictRow) -> bool {
    matches!(&row.evidence, Evidence::Output(output) if output.comparison == OutputComparison::Changed)
}

/// How far a row drifted.
fn drift(row: &VerdictRow) -> f64 {
    match &row.evidence {
        Evidence::Output(OutputEvidence { relative_drift: Some(drift), .. }) => *drift,
        _ => 0.0,
    }
}

/// `output at other prompt lengths, untimed: same at 2, 37 and 101 tokens; drifted at 333`.
fn note(rows: &[VerdictRow]) -> Option<Note> {
    let at = |is: &dyn Fn(Outcome) -> bool| {
        let named = rows.iter().filter(|row| is(row.outcome)).filter_map(|row| row.subject.case());
        named.map(|case| case.prompt_tokens().to_string()).collect::<Vec<_>>().join(", ")
    };
    let of = |word: &str, lengths: String| (!lengths.is_empty()).then(|| format!("{word} at {lengths}"));
    let parts = [
        of("same", at(&|outcome| outcome == Outcome::Pass)),
        of("drifted", at(&|outcome| outcome == Outcome::Drifted)),
        of("not the same", at(&|outcome| !matches!(outcome, Outcome::Pass | Outcome::Drifted))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text = format!("output at other prompt lengths, untimed: {} tokens", parts.join("; "));
    (!parts.is_empty()).then(|| Note::from(text))
}
