//! Reports on a terminal: what topics mark for it. Colour codes are added after widths are known; who prints them may strip them.

use std::fmt::Write as _;

use infergate_core::printable::{printable, printable_within};

use super::inputs::Inputs;
use super::load::unusable;
use super::model::{Block, Cell, Column, MAX_WORD_CHARS, Missing, Report, Section, Table, Tone};
use super::topics::{self, latency, memory, request, verdict as topic};
use super::{units, words};
use infergate_judge::{limit_fraction, summary_ns};
use infergate_receipts::{LoadReceipt, MemoryReceipt, Receipt, TargetRecord, Verdict};

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
        Block::Table(found) if !found.rows.is_empty() => {
            let title = if found.title.is_empty() { String::new() } else { format!("{}\n", bold(&found.title)) };
            title + &table(found) + &found.note.as_ref().map(line).unwrap_or_default()
        }
        Block::Table(_) | Block::Chart(_) => String::new(),
    }
}

/// Of a report, what its topics mark for a terminal.
fn marked(report: &Report) -> String {
    let shown = |section: &Section, part: &Block| match part {
        Block::Table(found) if found.on_terminal => {
            let title = if found.title.is_empty() { section.title } else { &found.title };
            block(&Block::Table(Table { title: title.into(), ..found.for_terminal() }))
        }
        Block::List(_) | Block::Findings(_) if section.on_terminal => block(part),
        _ => String::new(),
    };
    let parts = report.sections.iter().flat_map(|section| section.blocks.iter().map(move |part| shown(section, part)));
    parts.map(paragraph).collect()
}

/// `text` behind an empty line; nothing of nothing.
pub fn paragraph(text: String) -> String {
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// A change with its sign and a digit after the point.
pub fn change(change: Option<f64>) -> Cell {
    change.map_or(Cell::Missing(Missing::NotGiven), |change| Cell::text(units::signed_percent(change)))
}

/// A verdict: a line a case, what else there is to say, and the decision last.
pub fn verdict(verdict: &Verdict, subject: &str) -> String {
    verdict_and(verdict, subject, "")
}

/// The same with some lines more before the decision.
pub(super) fn verdict_and(verdict: &Verdict, subject: &str, more: &str) -> String {
    format!("\n{subject}\n{}", judged([topic::brief(verdict), topic::trends(verdict)].map(Block::Table), verdict, more))
}

/// A verdict on a memory phase: what loading took, what a generation took, both series, the counters, and the decision last.
pub fn memory(receipt: &MemoryReceipt, verdict: &Verdict) -> String {
    let subject = words::subject::engine(&receipt.engine, receipt.threads, &receipt.machine);
    let inputs = Inputs { memory: Some(receipt.clone()), verdict: Some(verdict.clone()), ..Inputs::default() };
    let blocks = memory::topic(&inputs).into_iter().flat_map(|section| section.blocks);
    format!("\n{subject}\n{}", judged(blocks.chain([Block::Table(topic::trends(verdict))]), verdict, ""))
}

/// A verdict on a load run: a line a time of each level, and as above.
pub fn load_verdict(verdict: &Verdict) -> String {
    judged([Block::Table(topic::brief(verdict))], verdict, "")
}

/// These parts, what the rows say in addition to their numbers, what holds for the whole run, some lines `more`, and the decision last.
fn judged(parts: impl IntoIterator<Item = Block>, verdict: &Verdict, more: &str) -> String {
    let parts: String = parts.into_iter().map(|part| paragraph(block(&part))).collect();
    let remarks = block(&Block::List(words::remarks(verdict, |_| true)));
    let gap = if remarks.is_empty() { "" } else { "\n" };
    let outcome = paint(Tone::of(verdict.verdict), verdict.verdict.words());
    let headline = words::headline::of(verdict);
    format!("{parts}\n{remarks}{gap}{more}verdict: {outcome} (exit {}): {headline}\n", verdict.exit_code)
}

/// A load run; of one that is not to be used, with its verdict last.
pub fn load(receipt: &LoadReceipt) -> String {
    let Some((outcome, why)) = unusable(receipt) else { return load_measured(receipt) };
    let verdict = paint(Tone::of(outcome), &format!("verdict: {} (exit {})", outcome.words(), outcome.exit_code()));
    format!("{}\n{verdict}: {why}\n", load_measured(receipt))
}

/// What was measured in it, good or not.
pub fn load_measured(receipt: &LoadReceipt) -> String {
    let inputs = Inputs { load: Some(receipt.clone()), ..Inputs::default() };
    let report = topics::report(&inputs);
    let came_out = if report.headline.is_none() { paragraph(format!("{}\n", report.title)) } else { String::new() };
    format!("\n{}\n{came_out}{}", load_targets(receipt), marked(&report))
}

/// Who was put under load, and by what.
pub fn load_targets(receipt: &LoadReceipt) -> String {
    let mut text = String::new();
    for target in &receipt.targets {
        let (name, url, api, model, http, extensions) = match target {
            TargetRecord::Endpoint { name, url, api, model, http, extensions, .. } => {
                (name, url, api, model, http, extensions)
            }
            TargetRecord::Local { engine: who, threads, .. } => {
                return format!("local: {}", words::subject::engine(who, *threads, &receipt.machine));
            }
        };
        let colon = if name.is_empty() { "" } else { ": " };
        let _ = write!(text, "{name}{colon}{url} ({api}, {http}), model {model}");
        if !extensions.is_empty() {
            let _ = write!(text, ", with {}", extensions.join(", "));
        }
        text.push('\n');
    }
    text + &format!("client: {}, each user keeps its connection, if the server lets it", receipt.machine.class)
}

/// A receipt: every metric of every case, then time to first token in parts.
pub fn receipt(receipt: &Receipt) -> String {
    let mut text = format!("\n{}\n\n{}", words::subject::subject(receipt), table(&latency::brief(receipt)));
    text += &paragraph(block(&Block::Table(request::starts(receipt).for_terminal())));
    text += "\n";
    for case in &receipt.cases {
        let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), summary_ns(&case.processes));
        if let Some(beyond) = words::missing::beyond_hardware(fraction) {
            let _ = writeln!(text, "{}: {beyond}", case.id);
        }
    }
    for reason in &receipt.invalid {
        let _ = writeln!(text, "{} {}", paint(Tone::Warn, "invalid:"), reason);
    }
    if receipt.partial {
        let _ = writeln!(text, "{} the run was cut short", paint(Tone::Warn, "partial:"));
    }
    text
}
