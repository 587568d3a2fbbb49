//! The report as JSON: the numbers to the last bit, beside what a person reads.

use anyhow::Result;
use serde_json::{Value, json};

use super::File;
use crate::inputs::Inputs;
use crate::model::{Block, Cell, Column, Finding, Report, Section, Table};
use infergate_receipts::to_json;

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    Ok(vec![File::new("report.json", to_json(&document(report))?)])
}

pub fn document(report: &Report) -> Value {
    let verdict = report
        .headline
        .as_ref()
        .map(|headline| json!({ "outcome": headline.outcome, "exit_code": headline.exit_code, "why": headline.said }));
    let sections: Vec<Value> = report.sections.iter().map(section).collect();
    json!({
        "schema": "infergate.report/1", "title": report.title, "subject": report.subject, "verdict": verdict, "sections": sections,
    })
}

fn section(section: &Section) -> Value {
    let (mut said, mut findings) = (Vec::new(), Vec::new());
    for block in &section.blocks {
        match block {
            Block::Said(text) => said.push(text),
            Block::List(list) => said.extend(list),
            Block::Findings(found) => findings.extend(found.iter().map(finding)),
            Block::Table(_) | Block::Chart(_) => {}
        }
    }
    let tables: Vec<Value> = section.tables().map(table).collect();
    let pictures: Vec<&str> = section.charts().map(|chart| chart.id.as_str()).collect();
    json!({
        "id": section.id, "title": section.title, "said": said, "tables": tables, "findings": findings, "pictures": pictures,
    })
}

fn table(table: &Table) -> Value {
    let column = |column: &Column| json!({ "id": column.id, "title": column.title, "about": column.about });
    let columns: Vec<Value> = table.columns.iter().map(column).collect();
    let rows: Vec<Vec<Value>> = table.rows.iter().map(|row| row.cells.iter().map(cell).collect()).collect();
    json!({ "id": table.id, "title": table.title, "columns": columns, "rows": rows })
}

fn cell(cell: &Cell) -> Value {
    let quantity = cell.quantity();
    let ends = quantity.and_then(|quantity| quantity.interval);
    json!({
        "text": cell.shown(),
        "value": quantity.map(|quantity| quantity.value),
        "low": ends.map(|(low, _)| low),
        "high": ends.map(|(_, high)| high),
        "unit": quantity.map(|quantity| quantity.unit.name()),
        "why_missing": cell.why(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({ "tone": finding.tone.name(), "said": finding.said })
}
