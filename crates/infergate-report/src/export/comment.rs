//! The comment on a pull request, and the summary of a workflow's step: what happened, the worst rows and where to look; the rest is
//! folded. It stays below GitHub's limit whatever the number of cases.

use anyhow::Result;
use serde_json::json;

use super::markup::{code, heading, line, prose};
use super::templates;
use crate::inputs::{Inputs, Links, commit};
use crate::model::{Block, Report, Row, Section, Table, Tone};
use crate::verdict_file::verdict_file;
use crate::words::explained::file_of;
use crate::words::{self, accept, provenance};
use infergate_receipts::{Build, Outcome, Verdict};

/// GitHub takes 65,536 characters; bytes are never fewer.
const MOST_BYTES: usize = 65_000;
/// Rows of all tables that are not folded.
const MOST_ROWS: usize = 5;
/// Cases that it says where to look of.
const MOST_PLACES: usize = 3;
/// Bytes of a list, and of the tables that are not folded.
const LIST_BYTES: usize = 8_000;
/// Bytes around what is folded.
const FOLD_BYTES: usize = 150;

pub fn export(inputs: &Inputs, report: &Report) -> Result<String> {
    let Some(verdict) = &inputs.verdict else { return Ok(String::new()) };
    let intended = accept::accepted(verdict);
    let sign = match Tone::of(verdict.verdict) {
        // A pass that somebody has to look at.
        Tone::Good if !intended.is_empty() => "☑️",
        Tone::Good => "✅",
        Tone::Warn => "⚠️",
        Tone::Bad => "❌",
        Tone::Plain | Tone::Dim => "ℹ️",
    };
    let changed = verdict.rows.iter().filter(|row| row.outcome == Outcome::OutputChanged);
    let mut outputs = words::grouped(changed);
    outputs.truncate(MOST_ROWS);
    let (shown, folded) = tables(report);
    let values = json!({
        "file": verdict_file(verdict, inputs),
        "sign": sign,
        "links": links(inputs),
        "lists": [("Intended; merging accepts it", list(&intended)), ("Changed output", list(&outputs))],
        "changed": text(&shown, LIST_BYTES),
        "where_to_look": where_to_look(verdict, inputs),
        "why_not_accepted": accept::why_not(verdict),
        "is_of_pull_request": inputs.pull_request,
        "subject": inputs.subject().map(|_| &report.subject),
        "how_to_accept": accept::HOW,
    });
    let text = templates::render("comment.md.jinja", include_str!("../../templates/comment.md.jinja"), values)?;
    let rest = rest(report, &folded, &outputs, MOST_BYTES.saturating_sub(text.len() + FOLD_BYTES));
    Ok(text + &rest)
}

/// What the second line leads to.
fn links(inputs: &Inputs) -> Vec<String> {
    let side = |name: &str, build: &Build| {
        let id = prose(&provenance::build(build));
        inputs.commit_link(build).map_or_else(|| format!("{name} {id}"), |link| format!("{name} [{id}]({link})"))
    };
    let builds = inputs.base_build().zip(inputs.subject());
    let sides = builds.into_iter().flat_map(|(base, head)| [side("base", base), side("head", head.build)]);
    let run = inputs
        .links
        .iter()
        .flat_map(|Links { run, files, .. }| [format!("[run]({run})"), format!("[report and receipts]({files})")]);
    let what_now =
        format!("[what now?]({}/blob/main/docs/how-to/fix-a-failed-pull-request.md)", env!("CARGO_PKG_REPOSITORY"));
    let failed = inputs.verdict.as_ref().is_some_and(|verdict| verdict.exit_code != 0);
    sides.chain(run).chain(failed.then_some(what_now)).collect()
}

/// The nearest place of a case, as a link to its line where the change edits it.
fn where_to_look(verdict: &Verdict, inputs: &Inputs) -> Vec<String> {
    let places = provenance::places(verdict, inputs);
    let first = |(subject, lines): &(String, Vec<String>)| Some(prose(&format!("{subject}: {}", lines.first()?)));
    let mut shown: Vec<String> = places.iter().take(MOST_PLACES).filter_map(first).collect();
    let head = inputs.paired.as_ref().and_then(|paired| commit(&paired.head.build));
    let functions =
        inputs.paired.iter().flat_map(|paired| &paired.explained).flat_map(|explained| &explained.functions);
    for place in
        functions.filter(|function| function.edited == Some(true)).filter_map(|function| function.place.as_ref())
    {
        let Some(((file, number), (links, head))) = file_of(place).zip(inputs.links.as_ref().zip(head)) else {
            continue;
        };
        let word = code(place, false);
        let link = format!("[{word}]({}/blob/{head}/{file}#L{number})", links.repository);
        shown.iter_mut().filter(|line| !line.contains(&link)).for_each(|line| *line = line.replace(&word, &link));
    }
    shown
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

/// Whether somebody should look at it.
fn is_bad(row: &&Row) -> bool {
    row.cells.last().is_some_and(|cell| matches!(cell.tone(), Tone::Bad | Tone::Warn))
}

/// The verdict's tables: the worst rows of those with something to look at, without details, and the others.
fn tables(report: &Report) -> (Vec<Table>, Vec<Table>) {
    let judged = report.sections.iter().filter(|section| ["verdict", "targets"].contains(&section.id));
    let judged: Vec<&Table> = judged.flat_map(Section::tables).collect();
    let mut bad: usize = judged.iter().flat_map(|table| &table.rows).filter(is_bad).count();
    let mut left = MOST_ROWS;
    let split = |table: &Table| {
        let own = table.rows.iter().filter(is_bad).count();
        bad -= own;
        // Rows that are bad go before others, those of later tables, too.
        let notable = table.rows.iter().take_while(|row| row.notable).count();
        let room = left.saturating_sub(bad).max(own.min(left));
        let (shown, folded) = table.rows.split_at(notable.min(room));
        left -= shown.len();
        let of = |rows: &[Row]| Table { rows: rows.to_vec(), ..table.clone() };
        (of(shown).brief(), of(folded))
    };
    judged.into_iter().map(split).unzip()
}

fn text(tables: &[Table], room: usize) -> String {
    let mut text = String::new();
    for table in tables.iter().filter(|table| !table.rows.is_empty()).map(Table::filled) {
        let heading = heading(&table);
        let lines = table.rows.iter().map(line);
        let (lines, more) = fitting(lines, room.saturating_sub(text.len() + heading.len()));
        let more = more.map_or_else(String::new, |more| format!("\n{more}\n"));
        text += &format!("\n{heading}{}{more}", lines.concat());
    }
    text
}

/// What did not change and what else the verdict says than what stands `above`, folded.
fn rest(report: &Report, folded: &[Table], above: &[String], room: usize) -> String {
    let tables = text(folded, room);
    let blocks = report.section("verdict").into_iter().flat_map(|section| &section.blocks);
    let remarks = blocks.filter_map(|block| if let Block::List(remarks) = block { Some(remarks) } else { None });
    let remarks = remarks.flatten().filter(|remark| !above.contains(remark));
    let lines = remarks.map(|remark| format!("- {}\n", prose(remark)));
    let (lines, more) = fitting(lines, room.saturating_sub(tables.len()));
    let (lines, more) = (lines.concat(), more.unwrap_or_default());
    if tables.is_empty() && lines.is_empty() {
        return String::new();
    }
    let summary = match folded.iter().flat_map(|table| &table.rows).filter(is_bad).count() {
        0 => "Everything else that was compared".to_owned(),
        bad => format!("{bad} more to look at, and everything else that was compared"),
    };
    format!("\n<details><summary>{summary}</summary>\n{tables}\n{lines}{more}\n</details>\n")
}
