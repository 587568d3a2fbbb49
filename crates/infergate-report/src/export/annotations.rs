//! Workflow annotations: printed in a step of a GitHub workflow, they stand beside the pull request's checks.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::Result;
use infergate_core::printable::printable;

use super::File;
use crate::inputs::Inputs;
use crate::model::Report;
use crate::words;
use infergate_receipts::{Outcome, VerdictRow};

/// GitHub shows ten of each kind in a step.
const MOST: usize = 10;

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let Some(verdict) = &inputs.verdict else { return Ok(Vec::new()) };
    let mut text = String::new();
    let is_seen = |row: &&VerdictRow| row.outcome.exit_code() != 0 || row.outcome == Outcome::Accepted;
    let mut shown: HashMap<&str, usize> = HashMap::new();
    let has_room = |row: &&VerdictRow| {
        let of_level = shown.entry(level(row.outcome)).or_default();
        *of_level += 1;
        *of_level <= MOST
    };
    let rows: Vec<&VerdictRow> = verdict.rows.iter().filter(is_seen).filter(has_room).collect();
    for row in &rows {
        let title = format!("infergate: {}", words::ending(row));
        let _ = writeln!(text, "::{} title={}::{}", level(row.outcome), property(&title), data(&words::decided(row)));
    }
    // What holds for the whole run stands in no row.
    let is_said = rows.iter().any(|row| row.outcome.exit_code() != 0);
    if rows.is_empty() || (verdict.exit_code != 0 && !is_said) {
        let said = words::headline::of(verdict);
        let title = format!("infergate: {}", verdict.verdict.words());
        let _ = writeln!(text, "::{} title={}::{}", level(verdict.verdict), property(&title), data(&said));
    }
    Ok(vec![File::new("annotations.txt", text)])
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

/// A property ends at a comma or a colon besides.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
