//! Every cell of every table, a line each: section, table, row, column, and the number with its unit.

use anyhow::Result;
use csv::Writer;
use infergate_core::printable::printable;

use crate::inputs::Inputs;
use crate::model::{Cell, Report};

pub fn export(_: &Inputs, report: &Report) -> Result<String> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record([
        "section",
        "table",
        "row",
        "subject",
        "column",
        "value",
        "low",
        "high",
        "unit",
        "text",
        "why_missing",
    ])?;
    for (section, table) in report.tables() {
        for (at, row) in table.rows.iter().enumerate() {
            let subject = row.cells.first().map(Cell::shown).unwrap_or_default();
            for (column, cell) in table.columns.iter().zip(&row.cells) {
                let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
                let quantity = cell.quantity();
                let ends = quantity.and_then(|quantity| quantity.interval);
                writer.write_record([
                    section.id.to_owned(),
                    table.id.clone(),
                    (at + 1).to_string(),
                    no_formula(&subject),
                    column.id.to_owned(),
                    number(cell.value()),
                    number(ends.map(|(low, _)| low)),
                    number(ends.map(|(_, high)| high)),
                    quantity.map(|quantity| quantity.unit.name()).unwrap_or_default().to_owned(),
                    no_formula(&cell.shown()),
                    cell.why().unwrap_or_default(),
                ])?;
            }
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// A spreadsheet computes a text that begins with one of these, some also with their wide forms; an apostrophe keeps it a text.
fn no_formula(text: &str) -> String {
    let text = printable(text);
    if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text.into_owned()
    }
}
