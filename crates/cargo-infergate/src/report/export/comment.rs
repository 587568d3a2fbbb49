//! The comment on a pull request, and the summary of a workflow's step: the verdict first, what changed below it, the rest
//! folded. It stays below GitHub's limit whatever the number of cases.

use std::fmt::Write as _;

use anyhow::Result;

use super::markup::{columns, inline, prose};
use super::{Exporter, File, NO_VERDICT};
use crate::receipt::Verdict;
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Report, Row, Section, Table, Tone};
use crate::report::words::look;

/// Whoever updates the comment in place finds it by this line.
pub const MARKER: &str = "<!-- infergate comment -->";

/// GitHub takes 65,536 characters; bytes are never fewer.
const MOST_BYTES: usize = 65_000;
/// Rows of a table of what changed.
const MOST_ROWS: usize = 40;
/// Sentences of a list.
const MOST_SENTENCES: usize = 20;
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
        inputs.verdict.is_none().then_some(NO_VERDICT)
    }

    fn export(&self, inputs: &Inputs, report: &Report) -> Result<Vec<File>> {
        let (Some(verdict), Some(headline)) = (&inputs.verdict, &report.headline) else { return Ok(Vec::new()) };
        let sign = match Tone::of(headline.outcome) {
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
        text += &changed(report, verdict);
        text += &looks(verdict, inputs);
        text += &compared(inputs, report);
        text += &commands(inputs);
        text += &folded(report, MOST_BYTES.saturating_sub(text.len()));
        Ok(vec![File::text("comment.md", text)])
    }
}

/// The sections whose tables can change something.
fn judged(report: &Report) -> impl Iterator<Item = &Table> {
    report.sections.iter().filter(|section| ["verdict", "targets"].contains(&section.id)).flat_map(Section::tables)
}

fn changed(report: &Report, verdict: &Verdict) -> String {
    let mut text = String::new();
    for table in judged(report) {
        let notable: Vec<&Row> = table.rows.iter().filter(|row| row.notable).collect();
        if notable.is_empty() {
            continue;
        }
        let shown = &notable[..notable.len().min(MOST_ROWS)];
        let _ = write!(text, "\n{}", columns(table, COLUMNS, shown));
        if notable.len() > shown.len() {
            let _ = write!(text, "\nand {} more\n", notable.len() - shown.len());
        }
    }
    if text.is_empty() {
        let _ = write!(text, "\n{}\n", prose(&look::nothing_changed(verdict)));
    }
    text
}

fn looks(verdict: &Verdict, inputs: &Inputs) -> String {
    let places: Vec<String> = look::places(verdict, inputs).into_iter().take(MOST_SENTENCES).collect();
    if places.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = places.iter().map(|place| format!("- {}", prose(place))).collect();
    format!("\n**Where to look**\n\n{}\n", lines.join("\n"))
}

/// What ran, where, and how sure the numbers are.
fn compared(inputs: &Inputs, report: &Report) -> String {
    let mut text = String::new();
    if inputs.subject().is_some() {
        let _ = write!(text, "\n**What was compared**\n\n{}  \n", inline(&report.title));
    }
    if let Some(sides) = look::sides(inputs) {
        let _ = writeln!(text, "{}", inline(&sides));
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
            // Made of this program's name, checked commits and a case's id: no text of a file's own.
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
            Block::Table(table) => within(table, room.saturating_sub(text.len())),
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

fn within(table: &Table, room: usize) -> String {
    let all: Vec<&Row> = table.rows.iter().collect();
    let ids: Vec<&str> = table.columns.iter().map(|column| column.id).collect();
    let mut count = all.len();
    loop {
        let left = all.len() - count;
        let more = if left > 0 { format!("\nand {left} more, in the report\n") } else { String::new() };
        let text = format!("\n{}{more}", columns(table, &ids, &all[..count]));
        if text.len() <= room || count == 0 {
            return if text.len() <= room { text } else { String::new() };
        }
        count /= 2;
    }
}
