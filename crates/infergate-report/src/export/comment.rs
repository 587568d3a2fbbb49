//! The comment on a pull request, and the summary of a workflow's step: what happened first, what changed below it, the rest
//! folded. It stays below GitHub's limit whatever the number of cases.

use std::fmt::Write as _;

use anyhow::Result;

use super::File;
use super::markup::{code, columns, inline, prose};
use crate::inputs::Inputs;
use crate::model::{Block, Cell, Report, Row, Section, Table, Tone};
use crate::words::{accept, headline, look};
use infergate_receipts::{Build, Outcome, Verdict};

/// Whoever updates the comment in place finds it by this line.
pub const MARKER: &str = "<!-- infergate comment -->";

/// What to do after each outcome.
const WHAT_NOW: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/how-to/fix-a-failed-pull-request.md");

/// GitHub takes 65,536 characters; bytes are never fewer.
const MOST_BYTES: usize = 65_000;
/// Rows of a table of what changed.
const MOST_ROWS: usize = 40;
/// Bytes of the tables of what changed, so that there is room for the rest whatever stands in them.
const CHANGED_BYTES: usize = 30_000;
/// Bytes of where to look.
const PLACES_BYTES: usize = 8_000;
/// Bytes of tables that declare a change as intended.
const ACCEPTS_BYTES: usize = 8_000;
/// Bytes around what is folded.
const FOLD_BYTES: usize = 100;
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

pub fn export(inputs: &Inputs, report: &Report) -> Result<Vec<File>> {
    let (Some(verdict), Some(decision)) = (&inputs.verdict, &report.headline) else { return Ok(Vec::new()) };
    let sign = match Tone::of(decision.outcome) {
        // A pass that somebody has to look at.
        Tone::Good if !accept::accepted(verdict).is_empty() => "⚠️",
        Tone::Good => "✅",
        Tone::Warn => "⚠️",
        Tone::Bad => "❌",
        Tone::Plain | Tone::Dim => "ℹ️",
    };
    let ends: Vec<&str> = headline::outcomes(verdict).into_iter().map(Outcome::words).collect();
    let mut text = format!("{MARKER}\n### {sign} infergate: {}\n\n{}\n", ends.join(", "), prose(&decision.said));
    let own_run = if inputs.pull_request { format!("\n{}\n", prose(look::OWN_RUN)) } else { String::new() };
    let what_now = if verdict.exit_code == 0 { String::new() } else { format!("\nWhat now: {WHAT_NOW}\n") };
    let parts = [
        own_run,
        intended(verdict),
        changed(report),
        looks(verdict, inputs),
        what_now,
        compared(inputs, report),
        commands(inputs),
        declared(verdict, inputs),
    ];
    // What a stranger's file makes too long is left out, and not the verdict.
    for part in &parts {
        if text.len() + part.len() <= MOST_BYTES {
            text += part;
        }
    }
    let room = MOST_BYTES.saturating_sub(text.len());
    text += &rest(report, room);
    Ok(vec![File::new("comment.md", text)])
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
    let tables = inputs.paired.as_ref().map_or_else(Vec::new, |receipt| accept::tables(receipt, verdict));
    let (shown, left) = accept::shown(&tables, ACCEPTS_BYTES);
    if shown.is_empty() {
        return String::new();
    }
    let more = if left > 0 { format!("\nand {left} more, likewise\n") } else { String::new() };
    let how = prose(accept::HOW);
    // No line of theirs can begin with what ends the block.
    format!("\n<details><summary>To accept this change</summary>\n\n{how}\n\n```toml\n{shown}```\n{more}\n</details>\n")
}

/// The sections whose tables can change something.
fn judged(report: &Report) -> impl Iterator<Item = &Table> {
    report.sections.iter().filter(|section| ["verdict", "targets"].contains(&section.id)).flat_map(Section::tables)
}

/// What changed, as many rows as there is room for.
fn changed(report: &Report) -> String {
    let mut text = String::new();
    for table in judged(report) {
        let notable: Vec<&Row> = table.rows.iter().filter(|row| row.notable).collect();
        if !notable.is_empty() {
            text += &within(table, COLUMNS, &notable, MOST_ROWS, CHANGED_BYTES.saturating_sub(text.len()));
        }
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
        let _ = write!(text, "\n**What was compared**\n\n{}  \n", inline(&report.subject));
    }
    if let Some((base, subject)) = inputs.base_build().zip(inputs.subject()) {
        let _ = writeln!(text, "{}{}", inline(&look::sides(base, subject.build)), built(base, subject.build));
    }
    if let Some(sure) = look::how_sure(inputs) {
        let _ = write!(text, "\n{}\n", prose(&sure));
    }
    text
}

/// What built both sides, where that was the same; a note says what differs.
fn built(base: &Build, head: &Build) -> String {
    if (&base.rustc, &base.flags) != (&head.rustc, &head.flags) || head.rustc.is_empty() {
        return String::new();
    }
    let flags = if head.flags.is_empty() { String::new() } else { format!(", {}", code(&head.flags, false)) };
    format!("; both by {}{flags}", code(&head.rustc, false))
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

/// The rows that did not change and what else the verdict says, as much of it as fits into `room` bytes.
fn rest(report: &Report, room: usize) -> String {
    let mut body = String::new();
    let mut is_all = true;
    for table in judged(report) {
        let rows: Vec<&Row> = table.rows.iter().filter(|row| !row.notable).collect();
        is_all &= rows.len() == table.rows.len();
        if !rows.is_empty() {
            let ids: Vec<&str> = table.columns.iter().map(|column| column.id).collect();
            body += &within(table, &ids, &rows, rows.len(), room.saturating_sub(body.len() + FOLD_BYTES));
        }
    }
    let mut lines = String::new();
    let lists = report.section("verdict").into_iter().flat_map(|section| &section.blocks);
    for said in lists.filter_map(|block| if let Block::List(said) = block { Some(said) } else { None }).flatten() {
        let line = format!("- {}\n", prose(said));
        if body.len() + lines.len() + line.len() + FOLD_BYTES <= room {
            lines += &line;
        }
    }
    if !lines.is_empty() {
        let _ = write!(body, "\n{lines}");
    }
    if body.is_empty() {
        return body;
    }
    let title = if is_all { "Everything that was compared" } else { "Everything else that was compared" };
    format!("\n<details><summary>{title}</summary>\n{body}\n</details>\n")
}

/// These rows, at most `most` and as many as fit into `room` bytes, and how many are left out; of all that are too many those that fail
/// come first.
fn within(table: &Table, ids: &[&str], rows: &[&Row], most: usize, room: usize) -> String {
    let verdict = table.columns.iter().position(|column| column.id == "verdict");
    let passes = |row: &&Row| match verdict.and_then(|at| row.cells.get(at)).map(Cell::tone) {
        Some(Tone::Bad) => 0,
        Some(Tone::Warn) => 1,
        _ => 2,
    };
    let mut worst_first = rows.to_vec();
    worst_first.sort_by_key(passes);
    let mut count = rows.len().min(most);
    loop {
        let left = rows.len() - count;
        let more = if left > 0 { format!("\nand {left} more, in the report\n") } else { String::new() };
        let shown = if left > 0 { &worst_first[..count] } else { rows };
        let text = if count > 0 { format!("\n{}{more}", columns(table, ids, shown)) } else { more };
        if text.len() <= room || count == 0 {
            return text;
        }
        count /= 2;
    }
}
