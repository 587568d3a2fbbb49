//! What `doctor` found, for a person.

use std::fmt::Write as _;

use serde::Serialize;

use super::table::{Style, Table};
use super::units;
use crate::machine::doctor;
use crate::receipt::Machine;

/// What the doctor found.
#[derive(Debug, Clone, Serialize)]
pub struct Checkup {
    /// The machine.
    pub machine: Machine,
    /// What was looked at.
    pub findings: Vec<doctor::Finding>,
    /// What each baseline of this machine class can see.
    pub sight: Vec<Sight>,
}

/// The smallest change of one case that the stored channel calls.
#[derive(Debug, Clone, Serialize)]
pub struct Sight {
    /// The baseline's file.
    pub baseline: String,
    /// Case id.
    pub case: String,
    /// Sessions of this case.
    pub sessions: usize,
    /// head / base above which it is called; `null` below the sessions it takes.
    pub ratio: Option<f64>,
}

/// The checkup as text.
pub fn text(checkup: &Checkup, min_sessions: usize) -> String {
    let mut text = format!("machine class {}\n\n", checkup.machine.class);
    let mut table = Table::new(&["", "looked at", "found"]);
    for finding in &checkup.findings {
        let (mark, style) = match (finding.noisy, finding.found == doctor::NOT_READABLE) {
            (true, _) => ("noisy", Style::Warn),
            (false, true) => ("unknown", Style::Dim),
            (false, false) => ("ok", Style::Good),
        };
        table.row(vec![
            (mark.into(), style),
            (finding.subject.clone(), Style::Plain),
            (finding.found.clone(), Style::Plain),
        ]);
    }
    text += &table.left_aligned().render();
    text += "\nadvice\n";
    for finding in &checkup.findings {
        if let Some(advice) = &finding.advice {
            let _ = writeln!(text, "- {}: {advice}", finding.subject);
        }
    }
    text += "\nsmallest slowdown the stored channel calls here\n";
    if checkup.sight.is_empty() {
        text += "unknown: this machine class has no baseline; make one with `cargo xtask bless`\n";
        return text;
    }
    let mut table = Table::new(&["baseline", "case", "sessions", "calls from"]);
    for sight in &checkup.sight {
        let calls = match sight.ratio {
            Some(ratio) => units::signed_percent(ratio - 1.0),
            None => format!("unknown, {} more sessions needed", min_sessions.saturating_sub(sight.sessions)),
        };
        table.plain_row(&[&sight.baseline, &sight.case, &sight.sessions.to_string(), &calls]);
    }
    text += &table.left_aligned().render();
    let _ = writeln!(text, "\nchanges below these need the same machine to run both builds in turn");
    text
}
