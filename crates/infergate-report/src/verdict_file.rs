//! The verdict file: what the comment says, for programs.

use infergate_core::printable::printable;

use super::inputs::Inputs;
use super::words::{self, accept, headline, provenance};
use infergate_receipts::{Failure, Verdict, VerdictFile};

fn line(text: String) -> String {
    printable(&text).into_owned()
}

pub fn verdict_file(verdict: &Verdict, inputs: &Inputs) -> VerdictFile {
    let places = provenance::places(verdict, inputs).into_iter();
    let places =
        places.flat_map(|(subject, lines)| lines.into_iter().map(move |text| line(format!("{subject}: {text}"))));
    VerdictFile {
        headline: headline::line(verdict),
        failures: failures(verdict),
        how_sure: provenance::how_sure(inputs).map(line),
        where_to_look: places.collect(),
        repeat: provenance::repeat(inputs),
        find_commit: provenance::bisect(inputs),
        accept: inputs.paired.as_ref().and_then(|receipt| accept::toml(receipt, verdict)),
        verdict: verdict.clone(),
    }
}

fn failures(verdict: &Verdict) -> Vec<Failure> {
    let failed = verdict.rows.iter().enumerate();
    let failed = failed.filter(|(_, row)| verdict.exit_code != 0 && row.outcome.exit_code() != 0);
    failed
        .map(|(at, row)| Failure {
            subject: row.subject.clone(),
            what: line(words::what(row)),
            outcome: row.outcome,
            message: line(words::decided(row)),
            row: at,
        })
        .collect()
}
