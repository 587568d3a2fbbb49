//! `report`: files that were measured or judged before, as pages, pictures and other programs' formats.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, Args};

use super::flags::{self, Keys, TakesKeys};
use super::outputs::Written;
use super::pages::{ensure_not_read, write};
use super::{output, outputs};
use infergate_report::export::EXPORTERS;
use infergate_report::export::json::document;
use infergate_report::topics;

mod load;

/// Make pages, tables and pictures of receipts
#[derive(Args)]
#[command(after_help = below())]
pub struct Report {
    /// Receipt, paired receipt, memory receipt, load receipt, verdict, or baseline of either kind; of two receipts the first is the
    /// earlier run
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Folder the report is written to
    #[arg(long, value_name = "DIR", required_unless_present = "json")]
    out: Option<PathBuf>,
    /// Formats, by comma [default: those that people read and that have what they need]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    format: Vec<String>,
    /// The files come from a pull request's own run: judge them by the settings here, and say so in the comment
    #[arg(long)]
    pull_request: bool,
    /// Write the report's tables here, as JSON; - is stdout, which then has nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    keys: Keys<Self>,
}

impl TakesKeys for Report {
    fn keys() -> Vec<Arg> {
        flags::one("targets")
    }
}

/// What stands below the flags.
fn below() -> String {
    let formats: Vec<String> =
        EXPORTERS.iter().map(|exporter| format!("  {:17} {}", exporter.name, exporter.about)).collect();
    format!(
        "Formats:\n{}\n\nExamples:\n  cargo xtask report target/infergate/receipt.json --out report\n  \
         cargo xtask report paired.json verdict.json --out report --format comment,html\n  \
         cargo xtask report before.json after.json --out report\n  \
         cargo xtask report target/infergate/load.json --out report",
        formats.join("\n")
    )
}

pub fn run(asked: &Report) -> Result<i32> {
    let Report { files, out, format, pull_request, json, keys } = asked;
    output::set_json(json.as_ref());
    let config = keys.config()?;
    if let Some(json) = json.as_deref().filter(|json| !output::is_stdout(json)) {
        ensure_not_read(json, files)?;
        outputs::fresh(json)?;
    }
    let inputs = load::inputs(files, &config, *pull_request)?;
    let mut written = Written::default();
    if let Some(folder) = out {
        written.note(write(folder, &inputs, format, files));
    }
    if let Some(json) = json {
        written.json(Some(json), &document(&topics::report(&inputs)));
    }
    Ok(written.code(0))
}
