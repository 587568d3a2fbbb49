//! What a paired run does that could not be decided: the key `undecided`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::flags;
use super::outputs::Kept;
use crate::gate::paired::{PairedPolicy, decide, judge};
use crate::receipt::{Note, Outcome, PairedReceipt, Target, Verdict, VerdictRow, read};

/// Where the receipt of the first of two runs is, whose second is at `out`.
pub fn first(out: &Path) -> PathBuf {
    out.with_extension("first.json")
}

/// The first run of a gate whose second was cut short, and is gone on with at `out`.
///
/// # Errors
/// A file that cannot be read.
pub fn before(out: &Path) -> Result<Option<PairedReceipt>> {
    let first = first(out);
    flags::is_there(&first).then(|| read(&first)).transpose()
}

/// Whether to measure once more: then the note that says so. The receipt of the first run is kept beside `out`, and what it
/// showed is in the note. A run that was decided, whichever way, is never repeated, nor one in which something is missing that a
/// second would not have either.
pub fn again(receipt: &PairedReceipt, policy: &PairedPolicy, out: &Path) -> Option<Note> {
    let verdict = without_counts(receipt, policy);
    if !verdict.is_open() {
        return None;
    }
    Kept::at(&first(out)).keep(receipt);
    Some(showed(&verdict, out))
}

/// What the first run showed, where the one at `out` is its second.
pub fn measured_before(first: &PairedReceipt, policy: &PairedPolicy, out: &Path) -> Note {
    showed(&without_counts(first, policy), out)
}

/// What is counted is counted after the last run.
fn without_counts(receipt: &PairedReceipt, policy: &PairedPolicy) -> Verdict {
    let timed = |target: &&Target| !target.metric().is_counted();
    let targets = policy.targets.iter().filter(timed).cloned().collect();
    decide(receipt, &PairedPolicy { targets, ..policy.clone() })
}

fn showed(verdict: &Verdict, out: &Path) -> Note {
    Note::from(format!(
        "the first run ended {} ({}), and undecided = \"again\" measured it once more, which at most doubles how often \
         an unchanged suite is called regressed; its receipt is {}",
        verdict.verdict.words(),
        subjects(verdict, VerdictRow::is_undecided),
        first(out).file_name().unwrap_or_default().to_string_lossy()
    ))
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
        ", and not what is missing, cannot be compared, still grows or is above its limit"
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
