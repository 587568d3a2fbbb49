//! What a paired run does that could not be decided: the key `undecided`.

use std::path::Path;

use anyhow::Result;

use crate::gate::paired::{PairedPolicy, judge};
use crate::receipt::{Note, Outcome, PairedReceipt, Verdict, write_json};

/// Whether to measure once more: then the note that says so. The receipt of the first run is kept beside `out`, and what it
/// showed is in the note. A run that was decided, whichever way, is never repeated.
///
/// # Errors
/// When the first receipt cannot be written.
pub fn again(receipt: &PairedReceipt, policy: &PairedPolicy, out: &Path) -> Result<Option<Note>> {
    let verdict = judge(receipt, policy);
    if receipt.partial || !verdict.verdict.is_undecided() {
        return Ok(None);
    }
    let kept = out.with_extension("first.json");
    write_json(&kept, receipt)?;
    let text = format!(
        "the first run ended {} ({}), and undecided = \"again\" measured it once more; its receipt is {}",
        verdict.verdict.words(),
        subjects(&verdict),
        kept.display()
    );
    Ok(Some(Note::from(text)))
}

/// Lets an undecided verdict pass, and says so.
pub fn warn(verdict: &mut Verdict) {
    if verdict.verdict.is_undecided() {
        verdict.exit_code = Outcome::Pass.exit_code();
        let text = format!("nothing is decided of {}; undecided = \"warn\" lets it pass", subjects(verdict));
        verdict.notes.insert(0, Note::from(text));
    }
}

fn subjects(verdict: &Verdict) -> String {
    let open = verdict.rows.iter().filter(|row| row.outcome.is_undecided());
    open.map(|row| row.subject.to_string()).collect::<Vec<_>>().join(", ")
}
