//! The whole report as Markdown.

use std::fmt::Write as _;

use anyhow::Result;

use super::PICTURES;
use super::markup::{heading, inline, line, prose};
use crate::inputs::Inputs;
use crate::model::{Block, Headline, Report, Row};

pub fn export(_: &Inputs, report: &Report) -> Result<String> {
    let mut text = format!("# {}\n", inline(&report.title, false));
    if let Some(Headline { ended, exit_code, .. }) = &report.headline {
        let _ = write!(text, "\n**verdict: {ended}** (exit {exit_code})\n");
    }
    if !report.subject.is_empty() && report.subject != report.title {
        let _ = write!(text, "\n{}\n", prose(&report.subject));
    }
    for section in report.for_pages().sections {
        let body: String = section.blocks.iter().map(block).collect();
        text += &if section.folded { folded(section.title, &body) } else { format!("\n## {}\n{body}", section.title) };
    }
    Ok(text)
}

/// What GitHub shows after a click. `body` begins with an empty line.
fn folded(summary: &str, body: &str) -> String {
    format!("\n<details><summary>{summary}</summary>\n{body}\n</details>\n")
}

fn block(block: &Block) -> String {
    let list = |items: &mut dyn Iterator<Item = &String>| {
        format!("\n{}", items.map(|item| format!("- {}\n", prose(item))).collect::<String>())
    };
    match block {
        Block::Said(sentence) => format!("\n{}\n", prose(sentence)),
        Block::List(sentences) => list(&mut sentences.iter()),
        Block::Findings(findings) => list(&mut findings.iter().map(|finding| &finding.said)),
        Block::Table(found) => {
            let title =
                if found.title.is_empty() { String::new() } else { format!("\n### {}\n", inline(&found.title, false)) };
            let table = |rows: &[Row]| format!("\n{}{}", heading(found), rows.iter().map(line).collect::<String>());
            let (shown, rest) = found.parts();
            let shown = if shown.is_empty() { String::new() } else { table(shown) };
            let which = if shown.is_empty() { "All" } else { "Other" };
            let summary = format!("{which} rows: {}", rest.len());
            let rest = if rest.is_empty() { String::new() } else { folded(&summary, &table(rest)) };
            let note = found.note.as_ref().map_or_else(String::new, |note| format!("\n{}\n", prose(note)));
            title + &shown + &rest + &note
        }
        Block::Chart(chart) => {
            let (title, caption) = (inline(&chart.title, false), prose(&chart.caption));
            format!("\n![{title}]({PICTURES}/{}.svg)\n\n{caption}\n", chart.id)
        }
    }
}
