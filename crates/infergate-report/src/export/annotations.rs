//! Workflow annotations: printed in a step of a GitHub workflow, they stand with the pull request's checks.

use anyhow::Result;
use infergate_core::printable::printable;

use crate::inputs::Inputs;
use crate::model::Report;
use crate::words;
use infergate_receipts::Outcome;

/// GitHub shows ten of each level in a step.
const MOST: usize = 10;

pub fn export(inputs: &Inputs, _: &Report) -> Result<String> {
    let Some(verdict) = &inputs.verdict else { return Ok(String::new()) };
    let rows = verdict.rows.iter().filter(|row| row.outcome.exit_code() != 0 || row.outcome == Outcome::Accepted);
    let mut messages: Vec<(Outcome, String)> = rows.map(|row| (row.outcome, words::decided(row))).collect();
    // What decides the whole run may stand in no row.
    if messages.iter().all(|(outcome, _)| outcome.exit_code() != verdict.exit_code) {
        messages.insert(0, (verdict.verdict, words::headline::of(verdict)));
    }
    let line = |level: &str, (outcome, message): &(Outcome, String)| {
        format!("::{level} title=infergate: {}::{}\n", outcome.words(), data(message))
    };
    let of_level = |level| messages.iter().filter(move |(outcome, _)| self::level(*outcome) == level).take(MOST);
    let lines = ["error", "warning", "notice"].iter().flat_map(|level| of_level(*level).map(|one| line(level, one)));
    Ok(lines.collect())
}

fn level(outcome: Outcome) -> &'static str {
    match outcome.exit_code() {
        0 if outcome == Outcome::Accepted => "warning",
        0 => "notice",
        3 | 4 => "warning",
        _ => "error",
    }
}

/// A message: one line, in which no other command begins.
fn data(text: &str) -> String {
    printable(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
