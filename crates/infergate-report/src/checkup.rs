//! What `doctor` found, for a person.

use super::model::{Cell, Missing, Rows, Tone, Unit};
use super::terminal::{paragraph, table};
use super::words;
use infergate_judge::MIN_SESSIONS;
use infergate_receipts::{Checkup, Finding};

pub fn text(checkup: &Checkup) -> String {
    let findings = Rows::of("findings", "", &checkup.findings)
        .words("state", "", |finding| match (finding.noisy, finding.found == Finding::NOT_READABLE) {
            (true, _) => Cell::text("noisy").toned(Tone::Warn),
            (false, true) => Cell::text("unknown").toned(Tone::Dim),
            (false, false) => Cell::text("ok").toned(Tone::Good),
        })
        .words("subject", "looked at", |finding| finding.subject.clone())
        .words("found", "found", |finding| finding.found.clone())
        .table();
    let advised = checkup.findings.iter().filter_map(|finding| Some((&finding.subject, finding.advice.as_ref()?)));
    let advice: String = advised.map(|(subject, advice)| format!("- {subject}: {advice}\n")).collect();
    let parts = [table(&findings), format!("advice\n{advice}"), stored(checkup), paired(checkup)];
    format!("machine class {}\n{}", checkup.machine.class, parts.map(paragraph).concat())
}

fn stored(checkup: &Checkup) -> String {
    let sights = Rows::of("stored", "", &checkup.sight)
        .words("baseline", "baseline", |sight| sight.baseline.clone())
        .words("case", "case", |sight| sight.case.clone())
        .numbers("sessions", "sessions", |sight| sight.sessions)
        .numbers("days", "days", |sight| sight.days)
        .numbers("fails_from", "fails from", |sight| match sight.ratio {
            Some(ratio) => Cell::of(ratio - 1.0, Unit::Change),
            None => format!("unknown, {}", words::days_needed(sight.days, MIN_SESSIONS)).into(),
        })
        .table();
    let shown = if sights.rows.is_empty() {
        "unknown: this machine class has no baseline; make one with the command `bless`\n".into()
    } else {
        table(&sights)
    };
    format!("smallest slowdown that a baseline shows here\n{shown}")
}

fn paired(checkup: &Checkup) -> String {
    let sights = Rows::of("paired", "", &checkup.paired)
        .words("calibration", "calibration", |sight| sight.calibration.clone())
        .words("case", "case", |sight| sight.case.clone())
        .numbers("noise", "noise of a block", |sight| Cell::of(sight.std, Unit::Fraction))
        .numbers("fails_from", "fails from", |sight| {
            Cell::number(sight.ratio.map(|ratio| ratio - 1.0), Unit::Change, Missing::NotGiven)
        })
        .table();
    let shown = if sights.rows.is_empty() {
        "unknown: this machine class was never calibrated; find out with the command `calibrate`\n".into()
    } else {
        table(&sights)
    };
    format!("smallest slowdown that `gate --against REV` shows here\n{shown}")
}
