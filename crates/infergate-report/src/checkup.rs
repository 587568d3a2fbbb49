//! What `doctor` found, for a person.

use super::model::{Cell, Rows, Tone};
use super::terminal::{paragraph, table};
use infergate_receipts::{Checkup, Finding};

pub fn text(checkup: &Checkup) -> String {
    let findings = Rows::of("findings", "", &checkup.findings)
        .titled_words("state", "", |finding| match (finding.noisy, finding.found == Finding::NOT_READABLE) {
            (true, _) => Cell::text("noisy").toned(Tone::Warn),
            (false, true) => Cell::text("unknown").toned(Tone::Dim),
            (false, false) => Cell::text("ok").toned(Tone::Good),
        })
        .titled_words("subject", "looked at", |finding| finding.subject.clone())
        .words("found", |finding| finding.found.clone())
        .table();
    let advised = checkup.findings.iter().filter_map(|finding| Some((&finding.subject, finding.advice.as_ref()?)));
    let advice: String = advised.map(|(subject, advice)| format!("- {subject}: {advice}\n")).collect();
    let parts = [table(&findings), format!("advice\n{advice}")];
    format!("machine class {}\n{}", checkup.machine.class, parts.map(paragraph).concat())
}
