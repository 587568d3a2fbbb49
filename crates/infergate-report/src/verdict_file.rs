//! The verdict file: what the comment says, for programs.

use infergate_core::printable::printable;

use super::inputs::Inputs;
use super::words::{self, accept, headline, look};
use infergate_receipts::{Failure, Verdict, VerdictFile};

pub fn verdict_file(verdict: &Verdict, inputs: &Inputs) -> VerdictFile {
    let line = |text: String| printable(&text).into_owned();
    let tables = inputs.paired.as_ref().map_or_else(Vec::new, |receipt| accept::tables(receipt, verdict));
    let (accept, _) = accept::shown(&tables, usize::MAX);
    VerdictFile {
        headline: headline::of(verdict),
        failures: failures(verdict),
        how_sure: look::how_sure(inputs).map(line),
        where_to_look: look::places(verdict, inputs).into_iter().map(line).collect(),
        repeat: look::repeat(inputs),
        find_commit: look::bisect(inputs),
        accept: Some(accept).filter(|accept| !accept.is_empty()),
        verdict: verdict.clone(),
    }
}

fn failures(verdict: &Verdict) -> Vec<Failure> {
    let line = |text: String| printable(&text).into_owned();
    let failed = verdict.rows.iter().enumerate();
    let failed = failed.filter(|(_, row)| verdict.exit_code != 0 && row.outcome.exit_code() != 0);
    failed
        .map(|(at, row)| Failure {
            subject: row.subject.clone(),
            what: line(words::what(row)),
            outcome: row.outcome,
            said: line(words::decided(row)),
            row: at,
        })
        .collect()
}
