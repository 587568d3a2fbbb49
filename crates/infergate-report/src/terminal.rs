//! Reports on a terminal: what topics mark for it. Colour codes are added after widths are known; who prints them may strip them.

use std::fmt::Write as _;

use infergate_core::printable::{printable, printable_within};

use super::inputs::Inputs;
use super::model::{Block, Column, Headline, MAX_WORD_CHARS, Report, Section, Table, Tone, not_shown};
use super::topics;
use infergate_receipts::Verdict;

/// `text` in this tone, as ANSI codes.
pub fn paint(tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Dim => 2,
        Tone::Good => 32,
        Tone::Bad => 31,
        Tone::Warn => 33,
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

pub fn bold(text: &str) -> String {
    format!("\u{1b}[1m{text}\u{1b}[0m")
}

/// Aligned columns without borders, each line ended. What a cell says may come from somebody's file: it is made one printable line.
pub fn table(table: &Table) -> String {
    let clean = |text: &str| printable_within(text, MAX_WORD_CHARS).into_owned();
    let headings: Vec<String> = table.columns.iter().map(|column| clean(&column.title)).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.cells.iter().map(|cell| clean(&cell.shown())).collect()).collect();
    let width = |at: usize| {
        let cells = rows.iter().chain([&headings]).filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &[String], painted: &dyn Fn(usize, &str) -> String| {
        let mut line = String::new();
        for (at, (cell, Column { numeric, .. })) in cells.iter().zip(&table.columns).enumerate() {
            let padding = " ".repeat(widths[at] - cell.chars().count());
            let (before, after) = if *numeric { (&*padding, "") } else { ("", &*padding) };
            let gap = if at == 0 { "" } else { "   " };
            let _ = write!(line, "{gap}{before}{}{after}", painted(at, cell));
        }
        format!("{}\n", line.trim_end())
    };
    let mut text = line(&headings, &|_, heading| bold(heading));
    for (cells, row) in rows.iter().zip(&table.rows) {
        text += &line(cells, &|at, cell| paint(row.cells[at].tone(), cell));
    }
    text
}

/// A part of a report as text, each line ended; nothing of a picture.
pub fn block(block: &Block) -> String {
    let line = |sentence: &String| format!("{}\n", printable(sentence));
    match block {
        Block::Said(sentence) => line(sentence),
        Block::List(list) => list.iter().map(|sentence| format!("- {}", line(sentence))).collect(),
        Block::Findings(findings) => findings.iter().map(|finding| format!("- {}", line(&finding.said))).collect(),
        Block::Table(found) => {
            format!("{}\n{}{}", bold(&found.title), table(found), found.note.as_ref().map(line).unwrap_or_default())
        }
        Block::Chart(_) => String::new(),
    }
}

/// The blocks of a report that its topics mark for a terminal. Below the tables stands once what is missing in them.
fn marked(report: &Report) -> String {
    let (mut text, mut tables) = (String::new(), Vec::new());
    // What to do stands last, above the prompt.
    let mut sections: Vec<&Section> = report.sections.iter().collect();
    sections.sort_by_key(|section| section.id == "load_advice");
    for section in sections {
        for part in &section.blocks {
            text += &paragraph(match part {
                Block::Table(found) if found.on_terminal => {
                    let title = if found.title.is_empty() { section.title } else { &found.title };
                    tables.push(found.brief());
                    block(&Block::Table(Table { title: title.into(), ..found.for_terminal() }))
                }
                Block::Said(_) | Block::List(_) | Block::Findings(_) if section.on_terminal => block(part),
                _ => String::new(),
            });
        }
    }
    text + &paragraph(not_shown(&tables).map(|line| line + "\n").unwrap_or_default())
}

/// `text` behind an empty line; nothing of nothing.
pub fn paragraph(text: String) -> String {
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What was measured, and the decision on it where there is one.
pub fn report(inputs: &Inputs) -> String {
    let report = topics::report(inputs);
    text(&report.subject, &report, "")
}

/// A decision alone on `subject`, some lines `more` before it.
pub fn verdict(subject: &str, verdict: &Verdict, more: &str) -> String {
    text(subject, &of_verdict(verdict), more)
}

/// What a verdict rests on, without the decision.
pub fn evidence(verdict: &Verdict) -> String {
    marked(&of_verdict(verdict))
}

fn of_verdict(verdict: &Verdict) -> Report {
    topics::report(&Inputs { verdict: Some(verdict.clone()), ..Inputs::default() })
}

/// Who was measured, what came out, and the decision last.
fn text(subject: &str, report: &Report, more: &str) -> String {
    let came_out = report.headline.is_none() && report.title != subject;
    let title = if came_out { paragraph(format!("{}\n", report.title)) } else { String::new() };
    let decision = report.headline.as_ref().map_or_else(String::new, |Headline { outcome, exit_code, ended, said }| {
        let ended = paint(Tone::of(*outcome), ended);
        format!("\n{more}verdict: {ended} (exit {exit_code}): {}\n", printable(said))
    });
    format!("\n{subject}\n{title}{}{decision}", marked(report))
}
