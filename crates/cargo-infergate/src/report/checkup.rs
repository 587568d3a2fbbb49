//! What `doctor` found, for a person.

use std::fmt::Write as _;

use super::table::{Style, Table};
use super::{units, words};
use crate::machine::doctor;
use crate::receipt::Checkup;

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
    text += &stored(checkup, min_sessions);
    text + &paired(checkup)
}

fn stored(checkup: &Checkup, min_sessions: usize) -> String {
    let mut text = String::from("\nsmallest slowdown the stored channel calls here\n");
    if checkup.sight.is_empty() {
        text += "unknown: this machine class has no baseline; make one with the command `bless`\n";
        return text;
    }
    let mut table = Table::new(&["baseline", "case", "sessions", "days", "calls from"]);
    for sight in &checkup.sight {
        let calls = match sight.ratio {
            Some(ratio) => units::signed_percent(ratio - 1.0),
            None => format!("unknown, {}", words::days_needed(sight.days, min_sessions)),
        };
        let (sessions, days) = (sight.sessions.to_string(), sight.days.to_string());
        table.plain_row(&[&sight.baseline, &sight.case, &sessions, &days, &calls]);
    }
    text + &table.left_aligned().render()
}

fn paired(checkup: &Checkup) -> String {
    let mut text = String::from("\nsmallest slowdown the paired channel (`gate --against REV`) calls here\n");
    if checkup.paired.is_empty() {
        text += "unknown: this machine class was never calibrated; find out with the command `calibrate`\n";
        return text;
    }
    let mut table = Table::new(&["calibration", "case", "noise of a block", "calls from"]);
    for sight in &checkup.paired {
        let calls = sight.ratio.map_or_else(|| units::MISSING.into(), |ratio| units::signed_percent(ratio - 1.0));
        table.plain_row(&[&sight.calibration, &sight.case, &units::percent(sight.std), &calls]);
    }
    text + &table.left_aligned().render()
}
