//! Every cell of every table, a line each: section, table, row, column, and the number with its unit.

use anyhow::Result;
use csv::Writer;
use infergate_core::printable::printable;

use super::File;
use crate::inputs::Inputs;
use crate::model::{Cell, Report, Table};

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
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
        for at in 0..table.rows.len() {
            row(&mut writer, section.id, table, at)?;
        }
    }
    let bytes =
        writer.into_inner().map_err(|error| anyhow::anyhow!("the table cannot be written: {}", error.error()))?;
    Ok(vec![File::new("report.csv", String::from_utf8(bytes)?)])
}

fn row(writer: &mut Writer<Vec<u8>>, section: &str, table: &Table, at: usize) -> Result<()> {
    let Some(row) = table.rows.get(at) else { return Ok(()) };
    let subject = row.cells.first().map(Cell::shown).unwrap_or_default();
    for (column, cell) in table.columns.iter().zip(&row.cells) {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let quantity = cell.quantity();
        let ends = quantity.and_then(|quantity| quantity.interval);
        writer.write_record([
            section.to_owned(),
            table.id.clone(),
            (at + 1).to_string(),
            no_formula(&subject),
            column.id.to_owned(),
            number(quantity.map(|quantity| quantity.value)),
            number(ends.map(|(low, _)| low)),
            number(ends.map(|(_, high)| high)),
            quantity.map(|quantity| quantity.unit.name()).unwrap_or_default().to_owned(),
            no_formula(&cell.shown()),
            cell.why().unwrap_or_default(),
        ])?;
    }
    Ok(())
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
