//! The whole report as Markdown.

use std::fmt::Write as _;

use anyhow::Result;

use super::markup::{inline, prose, table};
use super::svg::{chart_name, pictures};
use super::{Exporter, File, PICTURES};
use crate::report::inputs::Inputs;
use crate::report::model::{Block, Finding, Headline, Report, Section};

/// `report.md`.
pub struct Markdown;

impl Exporter for Markdown {
    fn name(&self) -> &'static str {
        "md"
    }

    fn about(&self) -> &'static str {
        "the whole report as Markdown"
    }

    fn is_usual(&self) -> bool {
        true
    }

    fn export(&self, _: &Inputs, report: &Report) -> Result<Vec<File>> {
        let mut text = format!("# {}\n", inline(&report.title));
        if let Some(headline) = &report.headline {
            let _ = write!(text, "\n{}\n", decision(headline));
        }
        for section in &report.sections {
            let _ = write!(text, "\n## {}\n{}", section.title, body(section, true));
        }
        // The page shows its pictures, so they come with it.
        let mut files = vec![File::text("report.md", text)];
        files.extend(pictures(report));
        Ok(files)
    }
}

/// The decision in one line: `**verdict: regressed** (exit 1): decode/p128 ...`.
pub fn decision(headline: &Headline) -> String {
    let Headline { outcome, exit_code, said } = headline;
    format!("**verdict: {}** (exit {exit_code}): {}", outcome.words(), inline(said))
}

/// What a section holds, without its heading.
pub fn body(section: &Section, with_pictures: bool) -> String {
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
                if !found.title.is_empty() {
                    let _ = write!(text, "\n### {}\n", inline(&found.title));
                }
                if let Some(note) = &found.note {
                    let _ = write!(text, "\n{}\n", prose(note));
                }
                let _ = write!(text, "\n{}", table(found));
            }
            Block::Findings(findings) => {
                text.push('\n');
                for finding in findings {
                    let _ = writeln!(text, "- {}", found(finding));
                }
            }
            Block::Chart(chart) if with_pictures => {
                let _ = write!(
                    text,
                    "\n![{}]({PICTURES}/{}.svg)\n\n{}\n",
                    inline(&chart.title),
                    chart_name(chart),
                    prose(&chart.caption)
                );
            }
            Block::Chart(_) => {}
        }
    }
    text
}

/// A finding with the figures it rests on.
fn found(finding: &Finding) -> String {
    let figures: Vec<String> =
        finding.rests_on.iter().map(|(name, quantity)| format!("{name} {}", quantity.shown())).collect();
    format!("{} ({})", prose(&finding.said), inline(&figures.join(", ")))
}
