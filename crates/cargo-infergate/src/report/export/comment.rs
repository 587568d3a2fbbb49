//! The comment on a pull request, and the summary of a workflow's step: the verdict first, what changed below it, the rest
//! folded. It stays below GitHub's limit whatever the number of cases.

use std::fmt::Write as _;

use anyhow::Result;

use super::markup::{columns, inline, prose};
use super::{Exporter, File, no_verdict};
use crate::receipt::Verdict;
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Report, Row, Section, Table, Tone};
use crate::report::words::{accept, look};

/// Whoever updates the comment in place finds it by this line.
pub const MARKER: &str = "<!-- infergate comment -->";

/// GitHub takes 65,536 characters; bytes are never fewer.
const MOST_BYTES: usize = 65_000;
/// Rows of a table of what changed.
const MOST_ROWS: usize = 40;
/// Bytes of the tables of what changed, so that there is room for the rest whatever stands in them.
const CHANGED_BYTES: usize = 30_000;
/// Bytes of where to look.
const PLACES_BYTES: usize = 8_000;
/// Columns of a table of what changed, in the order a reader needs them.
const COLUMNS: &[&str] = &[
    "case",
    "metric",
    "what",
    "witness",
    "target",
    "base",
    "head",
    "change",
    "fails_from",
    "slope",
    "counts_from",
    "limit",
    "achieved",
    "verdict",
];

/// `comment.md`.
pub struct Comment;

impl Exporter for Comment {
    fn name(&self) -> &'static str {
        "comment"
    }

    fn about(&self) -> &'static str {
        "a pull-request comment, also for GITHUB_STEP_SUMMARY"
    }

    fn is_usual(&self) -> bool {
        true
    }

    fn lacks(&self, inputs: &Inputs) -> Option<&'static str> {
        no_verdict(inputs)
    }

    fn export(&self, inputs: &Inputs, report: &Report) -> Result<Vec<File>> {
        let (Some(verdict), Some(headline)) = (&inputs.verdict, &report.headline) else { return Ok(Vec::new()) };
        let sign = match Tone::of(headline.outcome) {
            // A pass that somebody has to look at.
            Tone::Good if !accept::accepted(verdict).is_empty() => "⚠️",
            Tone::Good => "✅",
            Tone::Warn => "⚠️",
            Tone::Bad => "❌",
            Tone::Plain => "ℹ️",
        };
        let words = headline.outcome.words();
        let mut text = format!("{MARKER}\n### {sign} infergate: {words}\n");
        if let Some(said) = look::summary(verdict).or_else(|| headline.why.clone()) {
            let _ = write!(text, "\n{}\n", prose(&said));
        }
        if inputs.pull_request {
            let _ = write!(text, "\n{}\n", prose(look::OWN_RUN));
        }
        text += &intended(verdict);
        text += &changed(report, verdict);
        text += &looks(verdict, inputs);
        text += &declared(verdict, inputs);
        text += &compared(inputs, report);
        text += &commands(inputs);
        text += &folded(report, MOST_BYTES.saturating_sub(text.len()));
        Ok(vec![File::text("comment.md", text)])
    }
}

/// What passes because head declares it as intended: the reviewer's to decide, so it stands above everything else.
fn intended(verdict: &Verdict) -> String {
    let accepted = accept::accepted(verdict);
    let mut lines = String::new();
    let mut shown = 0;
    for line in accepted.iter().map(|said| format!("- {}\n", prose(said))) {
        if lines.len() + line.len() <= PLACES_BYTES {
            lines += &line;
            shown += 1;
        }
    }
    let more = accepted.len() - shown;
    if more > 0 {
        let _ = writeln!(lines, "- and {more} more, in the tables below");
    }
    if lines.is_empty() { lines } else { format!("\n**Intended, as head declares; merging accepts it**\n\n{lines}") }
}

/// The tables that would let pass what failed.
fn declared(verdict: &Verdict, inputs: &Inputs) -> String {
    let tables = inputs.paired.as_ref().and_then(|receipt| accept::tables(receipt, verdict));
    // No line of theirs can begin with what ends the block.
    tables.map_or_else(String::new, |tables| format!("\n{}\n\n```toml\n{tables}```\n", prose(accept::HOW)))
}

/// The sections whose tables can change something.
fn judged(report: &Report) -> impl Iterator<Item = &Table> {
    report.sections.iter().filter(|section| ["verdict", "targets"].contains(&section.id)).flat_map(Section::tables)
}

/// What changed, as many rows as there is room for.
fn changed(report: &Report, verdict: &Verdict) -> String {
    let mut text = String::new();
    for table in judged(report) {
        let notable: Vec<&Row> = table.rows.iter().filter(|row| row.notable).collect();
        if !notable.is_empty() {
            text += &within(table, COLUMNS, &notable, MOST_ROWS, CHANGED_BYTES.saturating_sub(text.len()));
        }
    }
    if text.is_empty() {
        let _ = write!(text, "\n{}\n", prose(&look::nothing_changed(verdict)));
    }
    text
}

fn looks(verdict: &Verdict, inputs: &Inputs) -> String {
    let mut lines = String::new();
    for place in look::places(verdict, inputs) {
        let line = format!("- {}\n", prose(&place));
        if lines.len() + line.len() <= PLACES_BYTES {
            lines += &line;
        }
    }
    if lines.is_empty() { lines } else { format!("\n**Where to look**\n\n{lines}") }
}

/// What ran, where, and how sure the numbers are.
fn compared(inputs: &Inputs, report: &Report) -> String {
    let mut text = String::new();
    if inputs.subject().is_some() {
        let _ = write!(text, "\n**What was compared**\n\n{}  \n", inline(&report.title));
    }
    if let Some((base, subject)) = inputs.base_build().zip(inputs.subject()) {
        let _ = writeln!(text, "{}", inline(&look::sides(base, subject.build)));
    }
    if let Some(sure) = look::how_sure(inputs) {
        let _ = write!(text, "\n{}\n", prose(&sure));
    }
    text
}

fn commands(inputs: &Inputs) -> String {
    let mut text = String::new();
    for (what, command) in [("Repeat it", look::repeat(inputs)), ("Find the commit", look::bisect(inputs))] {
        if let Some(command) = command {
            // Each value of a file is one word for a shell, and stays on its line.
            let _ = write!(text, "\n{what}:\n\n```console\n{command}\n```\n");
        }
    }
    text
}

/// Everything else, as much of it as fits into `room` bytes.
fn folded(report: &Report, room: usize) -> String {
    let mut text = String::new();
    for section in &report.sections {
        if !["verdict", "compared", "targets", "findings"].contains(&section.id) {
            continue;
        }
        let head = format!("\n<details><summary>{}</summary>\n", section.title);
        let tail = "\n</details>\n";
        let spent = text.len() + head.len() + tail.len();
        let body = fitting(section, room.saturating_sub(spent));
        if !body.is_empty() {
            text += &head;
            text += &body;
            text += tail;
        }
    }
    text
}

/// The blocks of a section, rows left out where there is no room for all.
fn fitting(section: &Section, room: usize) -> String {
    let mut text = String::new();
    for block in &section.blocks {
        let part = match block {
            Block::Table(table) => {
                let rows: Vec<&Row> = table.rows.iter().collect();
                let ids: Vec<&str> = table.columns.iter().map(|column| column.id).collect();
                within(table, &ids, &rows, rows.len(), room.saturating_sub(text.len()))
            }
            // How sure the numbers are was said above.
            Block::Chart(_) | Block::Said(_) => continue,
            other => {
                let alone = Section { blocks: vec![other.clone()], ..section.clone() };
                super::markdown::body(&alone, false)
            }
        };
        if text.len() + part.len() <= room {
            text += &part;
        }
    }
    text
}

/// The first of these rows, at most `most` and as many as fit into `room` bytes, and how many are left out.
fn within(table: &Table, ids: &[&str], rows: &[&Row], most: usize, room: usize) -> String {
    let mut count = rows.len().min(most);
    loop {
        let left = rows.len() - count;
        let more = if left > 0 { format!("\nand {left} more, in the report\n") } else { String::new() };
        let text = if count > 0 { format!("\n{}{more}", columns(table, ids, &rows[..count])) } else { more };
        if text.len() <= room || count == 0 {
            return text;
        }
        count /= 2;
    }
}
