//! The comment on a pull request, and the summary of a workflow's step: what happened first, what changed below it, the rest
//! folded. It stays below GitHub's limit whatever the number of cases.

use anyhow::Result;
use serde_json::json;

use super::markup::{heading, line, prose};
use super::{File, templates};
use crate::inputs::Inputs;
use crate::model::{Block, Report, Row, Section, Table, Tone};
use crate::verdict_file::verdict_file;
use crate::words::{accept, provenance};

/// GitHub takes 65,536 characters; bytes are never fewer.
const MOST_BYTES: usize = 65_000;
/// Rows of a table that are not folded.
const MOST_ROWS: usize = 5;
/// Bytes of a list, and of the tables that are not folded.
const LIST_BYTES: usize = 8_000;
/// Bytes around what is folded.
const FOLD_BYTES: usize = 150;

pub fn export(inputs: &Inputs, report: &Report) -> Result<Vec<File>> {
    let Some(verdict) = &inputs.verdict else { return Ok(Vec::new()) };
    let intended = accept::accepted(verdict);
    let sign = match Tone::of(verdict.verdict) {
        // A pass that somebody has to look at.
        Tone::Good if !intended.is_empty() => "⚠️",
        Tone::Good => "✅",
        Tone::Warn => "⚠️",
        Tone::Bad => "❌",
        Tone::Plain | Tone::Dim => "ℹ️",
    };
    let builds = inputs.base_build().zip(inputs.subject().map(|subject| subject.build));
    let same = builds.filter(|(base, head)| (&base.rustc, &base.flags) == (&head.rustc, &head.flags));
    let toolchain = same.map_or_else(Vec::new, |(_, head)| vec![&head.rustc, &head.flags]);
    let mut values = json!(verdict_file(verdict, inputs));
    values["where_to_look"] = json!(list(&provenance::places(verdict, inputs)));
    values["intended"] = json!(list(&intended));
    values["sign"] = sign.into();
    values["outcome"] = verdict.verdict.words().into();
    values["is_of_pull_request"] = inputs.pull_request.into();
    values["subject"] = inputs.subject().map(|_| report.subject.as_str()).into();
    values["sides"] = builds.map(|(base, head)| provenance::sides(base, head)).into();
    values["toolchain"] = json!(toolchain);
    values["how_to_accept"] = accept::HOW.into();
    values["repository"] = env!("CARGO_PKG_REPOSITORY").into();
    values["changed"] = tables(report, shown, LIST_BYTES).into();
    let text = templates::render("comment.md.jinja", &values)?;
    let rest = rest(report, MOST_BYTES.saturating_sub(text.len() + FOLD_BYTES));
    Ok(vec![File::new("comment.md", text + &rest)])
}

/// Sentences as the items of a list, as many as fit.
fn list(sentences: &[String]) -> Vec<String> {
    let (mut items, more) = fitting(sentences.iter().map(|sentence| prose(sentence)), LIST_BYTES);
    items.extend(more);
    items
}

/// The first of `lines`, as many as fit into `room` bytes. And how many more there are.
fn fitting(lines: impl Iterator<Item = String>, room: usize) -> (Vec<String>, Option<String>) {
    let mut bytes = 0;
    let (mut shown, mut left) = (Vec::new(), 0);
    for line in lines {
        bytes += line.len() + 3;
        if bytes <= room { shown.push(line) } else { left += 1 }
    }
    (shown, (left > 0).then(|| format!("and {left} more, in the report")))
}

/// Rows of the tables that can change something.
fn tables(report: &Report, rows: fn(&Table) -> Vec<Row>, room: usize) -> String {
    let judged = report.sections.iter().filter(|section| ["verdict", "targets"].contains(&section.id));
    let mut text = String::new();
    for table in judged.flat_map(Section::tables) {
        let table = Table { rows: rows(table), ..table.clone() }.for_pages();
        if table.rows.is_empty() {
            continue;
        }
        let heading = heading(&table);
        let lines = table.rows.iter().map(line);
        let (lines, more) = fitting(lines, room.saturating_sub(text.len() + heading.len()));
        let more = more.map_or_else(String::new, |more| format!("\n{more}\n"));
        text += &format!("\n{heading}{}{more}", lines.concat());
    }
    text
}

/// The rows that are not folded: of those with something to look at the worst ones.
fn shown(table: &Table) -> Vec<Row> {
    table.rows.iter().take_while(|row| row.notable).take(MOST_ROWS).cloned().collect()
}

fn folded(table: &Table) -> Vec<Row> {
    table.rows.iter().skip(shown(table).len()).cloned().collect()
}

/// What did not change and what else the verdict says, folded.
fn rest(report: &Report, room: usize) -> String {
    let tables = tables(report, folded, room);
    let blocks = report.section("verdict").into_iter().flat_map(|section| &section.blocks);
    let remarks = blocks.filter_map(|block| if let Block::List(remarks) = block { Some(remarks) } else { None });
    let lines = remarks.flatten().map(|remark| format!("- {}\n", prose(remark)));
    let (lines, more) = fitting(lines, room.saturating_sub(tables.len()));
    let (lines, more) = (lines.concat(), more.unwrap_or_default());
    if tables.is_empty() && lines.is_empty() {
        return String::new();
    }
    format!("\n<details><summary>Everything else that was compared</summary>\n{tables}\n{lines}{more}\n</details>\n")
}
