//! The whole report as Markdown.

use std::fmt::Write as _;

use anyhow::Result;

use super::markup::{inline, prose, rows_folded, table};
use super::{File, PICTURES, pictures};
use crate::inputs::Inputs;
use crate::model::{Block, Headline, Report, Section};

pub fn export(_: &Inputs, report: &Report) -> Result<Vec<File>> {
    let mut text = format!("# {}\n", inline(&report.title));
    if let Some(Headline { outcome, exit_code, .. }) = &report.headline {
        let _ = write!(text, "\n**verdict: {}** (exit {exit_code})\n", outcome.words());
    }
    if !report.subject.is_empty() && report.subject != report.title {
        let _ = write!(text, "\n{}\n", prose(&report.subject));
    }
    for section in &report.sections {
        let (title, body) = (section.title, body(section));
        let _ = match section.folded {
            true => write!(text, "\n{}", folded(title, &body)),
            false => write!(text, "\n## {title}\n{body}"),
        };
    }
    // The page shows its pictures, so they come with it.
    let mut files = vec![File::new("report.md", text)];
    files.extend(pictures(report));
    Ok(files)
}

/// What GitHub shows to those alone who ask for it. `body` begins with an empty line.
fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>\n{body}\n</details>\n")
}

/// What a section holds, without its heading.
fn body(section: &Section) -> String {
    let mut text = String::new();
    for block in &section.blocks {
        match block {
            Block::Said(said) => {
                let _ = write!(text, "\n{}\n", prose(said));
            }
            Block::List(list) => {
                text.push('\n');
                for said in list {
                    let _ = writeln!(text, "- {}", prose(said));
                }
            }
            Block::Table(found) => {
                let found = &found.for_pages();
                let (shown, rest) = found.parts();
                if !shown.is_empty() || rest.is_empty() {
                    if !found.title.is_empty() {
                        let _ = write!(text, "\n### {}\n", inline(&found.title));
                    }
                    if let Some(note) = &found.note {
                        let _ = write!(text, "\n{}\n", prose(note));
                    }
                    let _ = write!(text, "\n{}", table(found, shown));
                }
                if !rest.is_empty() {
                    let more = format!("\n{}", table(found, rest));
                    let _ = write!(text, "\n{}", folded(&inline(&rows_folded(found, rest.len())), &more));
                }
            }
            Block::Findings(findings) => {
                text.push('\n');
                for finding in findings {
                    let _ = writeln!(text, "- {}", prose(&finding.said));
                }
            }
            Block::Chart(chart) => {
                let _ = write!(
                    text,
                    "\n![{}]({PICTURES}/{}.svg)\n\n{}\n",
                    inline(&chart.title),
                    chart.id,
                    prose(&chart.caption)
                );
            }
        }
    }
    text
}
