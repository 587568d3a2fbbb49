//! The whole report as one page that needs nothing else: no network, and neither script nor colour to be read.

use anyhow::{Context, Result};
use infergate_core::printable::printable;
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::Serialize;

use super::File;
use super::markup::rows_folded;
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Cell, Chart, Column, Finding, Missing, Report, Row, Section, Table, Tone};
use crate::report::svg;
use crate::report::words::missing;

const TEMPLATE: &str = include_str!("../../../templates/report/page.html");
const STYLE: &str = include_str!("../../../templates/report/page.css");
const SCRIPT: &str = include_str!("../../../templates/report/page.js");

/// Characters across a table that stands beside a picture.
const MOST_NARROW: usize = 82;
/// Characters across a cell before it is wrapped, and around it.
const MOST_CELL: usize = 38;
const AROUND_CELL: usize = 3;

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    let mut pages = Environment::new();
    let fault = "the page cannot be made; this is a fault of infergate";
    let lines = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().context(fault)?;
    pages.set_syntax(lines);
    // The ending of its name turns escaping on.
    pages.add_template("page.html", TEMPLATE).context(fault)?;
    let page = pages.get_template("page.html").and_then(|template| template.render(Serde(page(report))));
    Ok(vec![File::new("report.html", page.context(fault)?)])
}

#[derive(Serialize)]
struct Page {
    title: String,
    subject: String,
    style: String,
    script: &'static str,
    verdict: Option<Decision>,
    sections: Vec<Part>,
}

#[derive(Serialize)]
struct Decision {
    tone: &'static str,
    words: &'static str,
    exit_code: i32,
}

#[derive(Serialize)]
struct Part {
    id: &'static str,
    title: &'static str,
    folded: bool,
    blocks: Vec<Item>,
}

/// One block; one of its fields is there.
#[derive(Serialize, Default)]
struct Item {
    said: Option<String>,
    list: Option<Vec<String>>,
    table: Option<Grid>,
    findings: Option<Vec<Found>>,
    /// SVG of this program's own making, every text in it escaped.
    chart: Option<String>,
    caption: String,
}

#[derive(Serialize)]
struct Grid {
    title: String,
    name: String,
    note: Option<String>,
    columns: Vec<Head>,
    rows: Vec<Vec<Entry>>,
    reasons: Vec<String>,
    wide: bool,
    /// What stands in place of it until somebody asks for it.
    folded: Option<String>,
}

#[derive(Serialize)]
struct Head {
    title: String,
    about: &'static str,
    numeric: bool,
}

#[derive(Serialize)]
struct Entry {
    text: String,
    foreign: bool,
    numeric: bool,
    tone: &'static str,
    value: Option<String>,
    why: Option<String>,
    note: Option<usize>,
}

#[derive(Serialize)]
struct Found {
    tone: &'static str,
    said: String,
    figures: Vec<String>,
}

fn page(report: &Report) -> Page {
    let verdict = report.headline.as_ref().map(|headline| Decision {
        tone: Tone::of(headline.outcome).name(),
        words: headline.outcome.words(),
        exit_code: headline.exit_code,
    });
    Page {
        title: line(&report.title),
        subject: if report.subject == report.title { String::new() } else { line(&report.subject) },
        style: format!("{STYLE}{}", svg::STYLE),
        script: SCRIPT,
        verdict,
        sections: report.sections.iter().map(part).collect(),
    }
}

fn line(text: &str) -> String {
    printable(text).into_owned()
}

fn part(section: &Section) -> Part {
    Part {
        id: section.id,
        title: section.title,
        folded: section.folded,
        blocks: section.blocks.iter().flat_map(|block| items(section, block)).collect(),
    }
}

/// One, and two of a table that folds.
fn items(section: &Section, block: &Block) -> Vec<Item> {
    let item = match block {
        Block::Said(said) => Item { said: Some(line(said)), ..Item::default() },
        Block::List(list) => Item { list: Some(list.iter().map(|said| line(said)).collect()), ..Item::default() },
        Block::Table(table) => return grids(section, table),
        Block::Findings(findings) => Item { findings: Some(findings.iter().map(found).collect()), ..Item::default() },
        Block::Chart(chart) => drawn(chart),
    };
    vec![item]
}

fn grids(section: &Section, table: &Table) -> Vec<Item> {
    let table = &table.for_pages();
    let (shown, rest) = table.parts();
    let mut grids = Vec::new();
    if rest.is_empty() || !shown.is_empty() {
        grids.push(grid(section, table, shown));
    }
    if !rest.is_empty() {
        let folded = Some(line(&rows_folded(table, rest.len())));
        grids.push(Grid { title: String::new(), note: None, folded, ..grid(section, table, rest) });
    }
    grids.into_iter().map(|grid| Item { table: Some(grid), ..Item::default() }).collect()
}

fn drawn(chart: &Chart) -> Item {
    Item { chart: Some(svg::inline(chart)), caption: line(&chart.caption), ..Item::default() }
}

fn found(finding: &Finding) -> Found {
    let figures = finding.figures().iter().map(|figure| line(figure)).collect();
    Found { tone: finding.tone.name(), said: line(&finding.said), figures }
}

fn grid(section: &Section, table: &Table, rows: &[Row]) -> Grid {
    let reasons = table.reasons();
    let head = |column: &Column| Head { title: line(&column.title), about: column.about, numeric: column.numeric };
    let row = |cells: &Vec<Cell>| {
        let numeric = |at: usize| table.columns.get(at).is_some_and(|column| column.numeric);
        cells.iter().enumerate().map(|(at, cell)| entry(cell, numeric(at), &reasons)).collect()
    };
    Grid {
        title: line(&table.title),
        name: if table.title.is_empty() { section.title.into() } else { line(&table.title) },
        note: table.note.as_deref().map(line),
        columns: table.columns.iter().map(head).collect(),
        rows: rows.iter().map(|found| row(&found.cells)).collect(),
        wide: width(table) > MOST_NARROW,
        folded: None,
        reasons: reasons.iter().map(|why| missing::reason(*why)).collect(),
    }
}

/// About how many characters a table is across.
fn width(table: &Table) -> usize {
    let of_column = |(at, column): (usize, &Column)| {
        let words = column.title.split(' ').map(|word| word.chars().count());
        let cells = table.rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| cell.shown().chars().count());
        words.chain(cells).max().unwrap_or(0).min(MOST_CELL) + AROUND_CELL
    };
    table.columns.iter().enumerate().map(of_column).sum()
}

fn entry(cell: &Cell, numeric: bool, reasons: &[Missing]) -> Entry {
    let note = match cell {
        Cell::Missing(why) => reasons.iter().position(|known| known == why).map(|at| at + 1),
        _ => None,
    };
    Entry {
        text: line(&cell.shown()),
        foreign: matches!(cell, Cell::Foreign(_)),
        numeric,
        tone: cell.tone().name(),
        value: cell.quantity().map(|quantity| quantity.value.to_string()),
        why: cell.why(),
        note,
    }
}
