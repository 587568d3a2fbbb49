//! What a paired run does that could not be decided: the key `undecided`.

use std::path::Path;

use super::outputs::Kept;
use crate::gate::paired::{PairedPolicy, decide, judge};
use crate::receipt::{Note, Outcome, PairedReceipt, Target, Verdict, VerdictRow};

/// Whether to measure once more: then the note that says so. The receipt of the first run is kept beside `out`, and what it
/// showed is in the note. A run that was decided, whichever way, is never repeated, nor one in which something is missing that a
/// second would not have either.
pub fn again(receipt: &PairedReceipt, policy: &PairedPolicy, out: &Path) -> Option<Note> {
    // What is counted is counted after the last run.
    let timed = |target: &&Target| !target.metric().is_counted();
    let targets = policy.targets.iter().filter(timed).cloned().collect();
    let verdict = decide(receipt, &PairedPolicy { targets, ..policy.clone() });
    if !verdict.is_open() {
        return None;
    }
    let kept = out.with_extension("first.json");
    Kept::at(&kept).keep(receipt);
    let text = format!(
        "the first run ended {} ({}), and undecided = \"again\" measured it once more; its receipt is {}",
        verdict.verdict.words(),
        subjects(&verdict, VerdictRow::is_undecided),
        kept.file_name().unwrap_or_default().to_string_lossy()
    );
    Some(Note::from(text))
}

/// What `undecided = "warn"` let pass, whether or not the whole verdict passes by it.
fn warning(verdict: &Verdict) -> Option<Note> {
    let open = subjects(verdict, VerdictRow::passes_undecided);
    // Beside a regression, say, or in a run that broke, it changes nothing.
    let is_of_run = matches!(verdict.verdict, Outcome::Invalid | Outcome::Partial);
    if open.is_empty() || is_of_run || !(verdict.passes_undecided() || matches!(verdict.exit_code, 3 | 4)) {
        return None;
    }
    let not_all = if verdict.passes_undecided() {
        ""
    } else {
        ", and not what is missing, cannot be compared or is above its limit"
    };
    Some(Note::from(format!("nothing is decided of {open}; undecided = \"warn\" lets it pass{not_all}")))
}

/// The verdict on a receipt, with what `undecided = "warn"` let pass.
pub fn judged(receipt: &PairedReceipt, policy: &PairedPolicy) -> Verdict {
    let mut verdict = judge(receipt, policy);
    let warning = if policy.undecided_passes { warning(&verdict) } else { None };
    verdict.notes.splice(0..0, warning);
    verdict
}

fn subjects(verdict: &Verdict, is_one: fn(&VerdictRow) -> bool) -> String {
    let open = verdict.rows.iter().filter(|row| is_one(row));
    open.map(|row| row.subject.to_string()).collect::<Vec<_>>().join(", ")
}
