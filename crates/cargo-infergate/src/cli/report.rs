//! `report`: files that were measured or judged before, as pages, pictures and other programs' formats.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Arg, Args};

use super::flags::{self, Keys, TakesKeys};
use super::outputs::Written;
use super::{output, outputs};
use infergate_receipts::write_text;
use infergate_report::export::json::document;
use infergate_report::export::{EXPORTERS, USUAL_FILES, chosen};
use infergate_report::inputs::Inputs;
use infergate_report::topics;
use infergate_report::verdict_file::verdict_file;

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

/// Empties the folder of `--report` of the pages of an earlier run: a comment that says "pass" must not outlive a gate that
/// failed to run.
pub fn begin(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    USUAL_FILES.iter().try_for_each(|name| outputs::fresh(&folder.join(name)))
}

pub fn run(asked: &Report) -> Result<i32> {
    let Report { files, out, format, pull_request, json, keys } = asked;
    output::heed_json(json.as_ref());
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

/// No files yet, and this program's name.
pub fn inputs() -> Inputs {
    Inputs::new(output::named("cargo xtask"))
}

/// Writes the verdict, if that was asked for, with what its comment says.
pub fn verdict(inputs: &Inputs, json: Option<&Path>, written: &mut Written) {
    if let Some(verdict) = inputs.verdict.as_ref().filter(|_| json.is_some()) {
        written.json(json, &verdict_file(verdict, inputs));
    }
}

/// Writes the usual formats.
///
/// # Errors
/// The first file that cannot be written, after all others were.
pub fn usual(folder: &Path, inputs: &Inputs) -> Result<()> {
    write(folder, inputs, &[], &[])
}

/// Writes the files of these formats, each as a whole.
///
/// # Errors
/// A format that is none or lacks what it needs; the first file that cannot be written, after all others were.
fn write(folder: &Path, inputs: &Inputs, formats: &[String], read: &[PathBuf]) -> Result<()> {
    let exporters = chosen(formats, inputs)?;
    let report = topics::report(inputs);
    let (mut written, mut failed) = (Vec::<String>::new(), None);
    for exporter in exporters {
        let files = (exporter.export)(inputs, &report).unwrap_or_else(|error| {
            failed.get_or_insert(error);
            Vec::new()
        });
        for file in files {
            let place = folder.join(&file.name);
            if written.contains(&file.name) {
                continue;
            }
            match ensure_not_read(&place, read).and_then(|()| write_text(&place, &file.text)) {
                Ok(()) => written.push(file.name),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
    }
    let (pictures, pages): (Vec<&String>, Vec<&String>) = written.iter().partition(|name| name.contains('/'));
    let pages: Vec<&str> = pages.into_iter().map(String::as_str).collect();
    let pictures = match pictures.len() {
        0 => String::new(),
        1 => " and 1 picture".into(),
        count => format!(" and {count} pictures"),
    };
    if !written.is_empty() {
        output::line(&format!("report: {} ({}{pictures})", folder.display(), pages.join(", ")));
    }
    failed.map_or(Ok(()), Err)
}

/// Refuses to write over what this report is made from.
fn ensure_not_read(path: &Path, read: &[PathBuf]) -> Result<()> {
    let place = path.display();
    ensure!(
        !read.iter().any(|read| outputs::same_file(path, read)),
        "{place}: is what the report is made from; name another place to write to"
    );
    Ok(())
}
