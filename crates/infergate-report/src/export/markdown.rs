//! The whole report as Markdown.

use std::fmt::Write as _;

use anyhow::Result;

use super::markup::{inline, prose, table};
use super::{File, PICTURES, pictures};
use crate::inputs::Inputs;
use crate::model::{Block, Headline, Report};

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    let mut text = format!("# {}\n", inline(&report.title));
    if let Some(Headline { outcome, exit_code, .. }) = &report.headline {
        let _ = write!(text, "\n**verdict: {}** (exit {exit_code})\n", outcome.words());
    }
    if !report.subject.is_empty() && report.subject != report.title {
        let _ = write!(text, "\n{}\n", prose(&report.subject));
    }
    for section in report.for_pages().sections {
        let body: String = section.blocks.iter().map(block).collect();
        text += &if section.folded { folded(section.title, &body) } else { format!("\n## {}\n{body}", section.title) };
    }
    // The page shows its pictures, so they come with it.
    let mut files = vec![File::new("report.md", text)];
    files.extend(pictures(report));
    Ok(files)
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
            let mut text = String::new();
            if !found.title.is_empty() {
                let _ = write!(text, "\n### {}\n", inline(&found.title));
            }
            if let Some(note) = &found.note {
                let _ = write!(text, "\n{}\n", prose(note));
            }
            let (shown, rest) = found.parts();
            if !shown.is_empty() {
                let _ = write!(text, "\n{}", table(found, shown));
            }
            if !rest.is_empty() {
                let summary = format!("Rows with nothing to look at: {}", rest.len());
                text += &folded(&summary, &format!("\n{}", table(found, rest)));
            }
            text
        }
        Block::Chart(chart) => {
            let (title, caption) = (inline(&chart.title), prose(&chart.caption));
            format!("\n![{title}]({PICTURES}/{}.svg)\n\n{caption}\n", chart.id)
        }
    }
}
