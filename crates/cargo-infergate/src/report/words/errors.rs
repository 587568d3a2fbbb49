//! How often the gate is wrong: by design, and as a calibration measured it. These are two numbers, and are never said as one.

use crate::gate::paired::design_level;
use crate::receipt::Note;
use crate::report::units::{self, MISSING};
use crate::stats::clopper_pearson;

/// What was measured, in a note of its own, beside what holds by design; `None` for any other note.
pub fn noted(note: &Note) -> Option<String> {
    let design = format!("by design at most {} of suites where nothing changed", units::level(design_level()));
    match note {
        Note::OwnErrors { calibrated, gates, regressed } => Some(format!(
            "this gate's own error rate here, calibrated {calibrated}: {regressed} of {gates} settled gates between two builds that \
             do the same called regressed (at most {} with 95 % confidence); {design}",
            at_most(*regressed, *gates)
        )),
        Note::OwnErrorsUnknown { why } => {
            Some(format!("this gate's own error rate was not measured for a run like this one: {why}; {design}"))
        }
        _ => None,
    }
}

/// Both numbers in two sentences; the second is left out where no note has it. `luck` is what the first leaves out.
pub fn said(notes: &[Note], luck: &str) -> String {
    let design = format!(
        "By design at most {} of suites where nothing changed are called regressed{luck}.",
        units::level(design_level())
    );
    let measured = notes.iter().find_map(|note| match note {
        Note::OwnErrors { calibrated, gates, regressed } => Some(format!(
            "{design} Measured here, calibrated {calibrated}: {regressed} of {gates} settled gates between two builds that do the same \
             (at most {} with 95 % confidence).",
            at_most(*regressed, *gates)
        )),
        Note::OwnErrorsUnknown { why } => Some(format!("{design} How often that happens here was not measured: {why}.")),
        _ => None,
    });
    measured.unwrap_or(design)
}

/// The exact upper bound, one-sided, 95 %.
fn at_most(hits: u64, trials: u64) -> String {
    clopper_pearson(hits, trials, 0.90).map_or_else(|| MISSING.into(), |(_, high)| units::percent(Some(high)))
}
