//! The whole report as one page that needs nothing else: no network, and neither script nor colour to be read.

use anyhow::{Context, Result};
use infergate_core::printable::printable;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, escape_formatter};
use serde_json::{Value, json};

use super::File;
use super::markup::rows_folded;
use crate::inputs::Inputs;
use crate::model::{Block, Cell, Column, Finding, Missing, Report, Row, Section, Table, Tone};
use crate::svg;
use crate::words::missing;

const TEMPLATE: &str = include_str!("../../templates/page.html");
const STYLE: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    let mut pages = Environment::new();
    let fault = "the page cannot be made; this is a fault of infergate";
    let lines = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().context(fault)?;
    pages.set_syntax(lines);
    // Style, script and pictures are marked as safe; everything else is one printable line.
    pages.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        Some(text) => escape_formatter(out, state, &printable(text).into_owned().into()),
        None => escape_formatter(out, state, value),
    });
    // The ending of its name turns escaping on.
    pages.add_template("page.html", TEMPLATE).context(fault)?;
    let page = pages.get_template("page.html").and_then(|template| template.render(Serde(page(report))));
    Ok(vec![File::new("report.html", page.context(fault)?)])
}

fn page(report: &Report) -> Value {
    let verdict = report.headline.as_ref().map(|headline| {
        let outcome = headline.outcome;
        json!({ "tone": Tone::of(outcome).name(), "words": outcome.words(), "exit_code": headline.exit_code })
    });
    let part = |section: &Section| {
        let blocks: Vec<Value> = section.blocks.iter().flat_map(|block| items(section, block)).collect();
        json!({ "id": section.id, "title": section.title, "folded": section.folded, "blocks": blocks })
    };
    json!({
        "title": report.title,
        "subject": if report.subject == report.title { "" } else { &report.subject },
        "style": format!("{STYLE}{}", svg::STYLE),
        "script": SCRIPT,
        "verdict": verdict,
        "sections": report.sections.iter().map(part).collect::<Vec<Value>>(),
    })
}

/// One, and two of a table that folds.
fn items(section: &Section, block: &Block) -> Vec<Value> {
    vec![match block {
        Block::Said(said) => json!({ "said": said }),
        Block::List(list) => json!({ "list": list }),
        Block::Table(table) => return grids(section, table),
        Block::Findings(findings) => json!({ "findings": findings.iter().map(found).collect::<Vec<Value>>() }),
        // SVG of this program's own making, every text in it escaped.
        Block::Chart(chart) => json!({ "chart": svg::inline(chart), "caption": chart.caption }),
    }]
}

fn grids(section: &Section, table: &Table) -> Vec<Value> {
    let table = &table.for_pages();
    let (shown, rest) = table.parts();
    let mut grids = Vec::new();
    if rest.is_empty() || !shown.is_empty() {
        grids.push(grid(section, table, shown, None));
    }
    if !rest.is_empty() {
        grids.push(grid(section, table, rest, Some(rows_folded(table, rest.len()))));
    }
    grids
}

fn found(finding: &Finding) -> Value {
    json!({ "tone": finding.tone.name(), "said": finding.said })
}

/// `folded` stands in place of it until somebody asks for it.
fn grid(section: &Section, table: &Table, rows: &[Row], folded: Option<String>) -> Value {
    let reasons = table.reasons();
    let head = |column: &Column| json!({ "title": column.title, "about": column.about, "numeric": column.numeric });
    let row = |row: &Row| -> Vec<Value> {
        row.cells.iter().zip(&table.columns).map(|(cell, column)| entry(cell, column.numeric, &reasons)).collect()
    };
    json!({ "table": {
        "title": if folded.is_none() { &table.title } else { "" },
        "name": if table.title.is_empty() { section.title } else { &table.title },
        "note": table.note.as_ref().filter(|_| folded.is_none()),
        "columns": table.columns.iter().map(head).collect::<Vec<Value>>(),
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "reasons": reasons.iter().map(|why| missing::reason(*why)).collect::<Vec<String>>(),
        "folded": folded,
    }})
}

fn entry(cell: &Cell, numeric: bool, reasons: &[Missing]) -> Value {
    let note = match cell {
        Cell::Missing(why) => reasons.iter().position(|known| known == why).map(|at| at + 1),
        _ => None,
    };
    json!({
        "text": cell.shown(),
        "foreign": matches!(cell, Cell::Foreign(_)),
        "numeric": numeric,
        "tone": cell.tone().name(),
        "value": cell.quantity().map(|quantity| quantity.value.to_string()),
        "why": cell.why(),
        "note": note,
    })
}
