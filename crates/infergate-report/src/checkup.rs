//! What `doctor` found, for a person.

use std::fmt::Write as _;

use super::model::{Cell, Missing, Table, Tone, Unit};
use super::{terminal, units, words};
use infergate_judge::MIN_SESSIONS;
use infergate_receipts::{Checkup, Finding};

pub fn text(checkup: &Checkup) -> String {
    let mut text = format!("machine class {}\n\n", checkup.machine.class);
    let mut table = Table::brief(&["", "looked at", "found"]);
    for finding in &checkup.findings {
        let (mark, tone) = match (finding.noisy, finding.found == Finding::NOT_READABLE) {
            (true, _) => ("noisy", Tone::Warn),
            (false, true) => ("unknown", Tone::Dim),
            (false, false) => ("ok", Tone::Good),
        };
        table.row(vec![
            Cell::text(mark).toned(tone),
            Cell::text(finding.subject.clone()),
            Cell::text(finding.found.clone()),
        ]);
    }
    text += &terminal::table(&table.left_aligned());
    text += "\nadvice\n";
    for finding in &checkup.findings {
        if let Some(advice) = &finding.advice {
            let _ = writeln!(text, "- {}: {advice}", finding.subject);
        }
    }
    text += &stored(checkup);
    text + &paired(checkup)
}

fn stored(checkup: &Checkup) -> String {
    let mut text = String::from("\nsmallest slowdown the stored channel calls here\n");
    if checkup.sight.is_empty() {
        text += "unknown: this machine class has no baseline; make one with the command `bless`\n";
        return text;
    }
    let mut table = Table::brief(&["baseline", "case", "sessions", "days", "calls from"]);
    for sight in &checkup.sight {
        let calls = match sight.ratio {
            Some(ratio) => units::signed_percent(ratio - 1.0),
            None => format!("unknown, {}", words::days_needed(sight.days, MIN_SESSIONS)),
        };
        table.row(vec![
            Cell::text(sight.baseline.clone()),
            Cell::text(sight.case.clone()),
            Cell::count(sight.sessions),
            Cell::count(sight.days),
            Cell::text(calls),
        ]);
    }
    text + &terminal::table(&table.left_aligned())
}

fn paired(checkup: &Checkup) -> String {
    let mut text = String::from("\nsmallest slowdown the paired channel (`gate --against REV`) calls here\n");
    if checkup.paired.is_empty() {
        text += "unknown: this machine class was never calibrated; find out with the command `calibrate`\n";
        return text;
    }
    let mut table = Table::brief(&["calibration", "case", "noise of a block", "calls from"]);
    for sight in &checkup.paired {
        table.row(vec![
            Cell::text(sight.calibration.clone()),
            Cell::text(sight.case.clone()),
            Cell::number(sight.std, Unit::Fraction, Missing::NotMeasured),
            terminal::change(sight.ratio.map(|ratio| ratio - 1.0)),
        ]);
    }
    text + &terminal::table(&table.left_aligned())
}
