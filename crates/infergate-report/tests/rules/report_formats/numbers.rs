//! One number, one value: what Markdown and HTML show and what CSV and JSON hold is the same, cell by cell.

use serde_json::Value;

use crate::report_formats::support::{all, file};

/// A cell of the JSON: its text, its number, and why there is none.
struct Cell {
    text: String,
    value: Option<f64>,
    why: Option<String>,
}

/// The rows of each table.
fn tables(json: &str) -> Vec<Vec<Vec<Value>>> {
    let document: Value = serde_json::from_str(json).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let blocks = list(&document["sections"]).into_iter().flat_map(|section| list(&section["blocks"]));
    let rows = |block: Value| list(&block["table"]["rows"]).iter().map(|row| list(&row["cells"])).collect();
    blocks.map(rows).collect()
}

/// Whether pages show each cell: its column has something in some row.
fn on_pages(json: &str) -> Vec<bool> {
    let mut shown = Vec::new();
    for rows in tables(json) {
        let says = |cell: &Value| !["", "—"].contains(&cell["text"].as_str().expect("a text"));
        let said = |at: usize| rows.iter().any(|row| says(&row[at]));
        shown.extend(rows.iter().flat_map(|row| (0..row.len()).map(said).collect::<Vec<_>>()));
    }
    shown
}

fn cells(json: &str) -> Vec<Cell> {
    let cells = tables(json).into_iter().flatten().flatten();
    let cell = |cell: Value| Cell {
        text: cell["text"].as_str().expect("a text").to_owned(),
        value: cell["value"].as_f64(),
        why: cell["why_missing"].as_str().map(str::to_owned),
    };
    cells.map(cell).collect()
}

/// Text of each cell of the page, and why it has no number.
fn page_cells(page: &str) -> Vec<(String, Option<String>)> {
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        rest.split_once('"').map(|(value, _)| plain(value))
    };
    page.split("<td ")
        .skip(1)
        .map(|cell| {
            let (tag, rest) = cell.split_once('>').expect("a tag");
            let (inner, _) = rest.split_once("</td>").expect("its end");
            let inner = inner.split_once("<sup>").map_or(inner, |(text, _)| text);
            let inner = inner.replace("<code>", "").replace("</code>", "");
            (plain(&inner), attribute(tag, "title"))
        })
        .collect()
}

fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for (code, c) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'"), ("&#x2f;", "/")]
    {
        text = text.replace(code, c);
    }
    text.replace("&amp;", "&")
}

/// The cells of every table of the Markdown, as a reader sees them.
fn markdown_cells(text: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut in_body = false;
    for line in text.lines() {
        match line {
            line if line.starts_with("|---") => in_body = true,
            line if line.starts_with("| ") && in_body => {
                let line = line.trim_start_matches("| ").trim_end_matches('|');
                let line = line.strip_suffix(' ').unwrap_or(line);
                cells.extend(line.split(" | ").map(unmarked));
            }
            _ => in_body = false,
        }
    }
    cells
}

fn unmarked(cell: &str) -> String {
    if let Some(code) = cell.strip_prefix('`') {
        return code.trim_end_matches('`').replace("\\|", "|");
    }
    let cell = cell.split_once("— (").map_or(cell, |_| "—");
    plain(&cell.replace('\\', ""))
}

#[test]
fn markdown_html_csv_and_json_hold_the_same_numbers() {
    for (name, inputs) in all() {
        let json = file(&inputs, "report.json");
        let shown = on_pages(&json);
        let (mut of_cells, mut of_records) = (shown.iter(), shown.iter());
        let mut cells = cells(&json);
        assert!(cells.iter().filter(|cell| cell.value.is_some()).count() > 10, "{name}: there are numbers");
        let page = page_cells(&file(&inputs, "report.html"));
        let csv = file(&inputs, "report.csv");
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let mut records: Vec<csv::StringRecord> = reader.records().map(|record| record.expect("a record")).collect();
        assert_eq!(records.len(), cells.len(), "{name}");
        // Pages leave out the columns that say nothing; files for programs have them all.
        cells.retain(|_| *of_cells.next().expect("a cell"));
        records.retain(|_| *of_records.next().expect("a cell"));
        let markdown = markdown_cells(&file(&inputs, "report.md"));
        assert_eq!([page.len(), records.len(), markdown.len()], [cells.len(); 3], "{name}");
        for (at, cell) in cells.iter().enumerate() {
            let (text, title) = &page[at];
            assert_eq!(text, &cell.text, "{name}: HTML");
            assert_eq!(*title, cell.why, "{name}: HTML, {}", cell.text);
            let record = &records[at];
            assert_eq!(record[5].parse().ok(), cell.value, "{name}: CSV, {}", cell.text);
            assert_eq!(record[9].trim_start_matches('\''), cell.text, "{name}: CSV");
            assert_eq!(&record[10], cell.why.as_deref().unwrap_or_default(), "{name}: CSV");
            assert_eq!(markdown[at], cell.text, "{name}: Markdown");
        }
    }
}

#[test]
fn what_is_undefined_is_a_dash_with_its_reason_and_never_zero() {
    for (name, inputs) in all() {
        for cell in cells(&file(&inputs, "report.json")) {
            assert_eq!(cell.text == "—", cell.why.is_some(), "{name}: {}", cell.text);
            assert!(cell.why.is_none() || cell.value.is_none(), "{name}");
            assert!(cell.text.split(' ').all(|word| word != "NaN" && word != "inf"), "{name}: {}", cell.text);
        }
    }
}
