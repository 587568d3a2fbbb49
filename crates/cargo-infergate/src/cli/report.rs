//! `report`: files that were measured or judged before, as pages, pictures and other programs' formats.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Arg, Args};
use infergate_core::text_file::read_text;

use super::flags::{self, Keys, TakesKeys};
use super::outputs::Written;
use super::{output, outputs};
use crate::receipt::{write_bytes, write_text};
use crate::report::export::json::document;
use crate::report::export::{EXPORTERS, USUAL_FILES, chosen};
use crate::report::inputs::Inputs;
use crate::report::splice::splice;
use crate::report::topics;
use crate::report::verdict_file::verdict_file;
use crate::report::words::command::file;

mod load;

/// Documents to splice into are read up to this size.
const MAX_DOCUMENT_BYTES: u64 = 16 << 20;

/// Make pages, tables and pictures of receipts
#[derive(Args)]
#[command(after_help = below())]
pub struct Report {
    /// Receipt, paired receipt, memory receipt, load receipt, verdict, baseline of either kind, or the JSON of llama-bench or vLLM;
    /// of two receipts the first is the earlier run
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Folder the report is written to
    #[arg(long, value_name = "DIR", required_unless_present_any = ["splice", "json"])]
    out: Option<PathBuf>,
    /// Formats, by comma [default: those that people read and that have what they need]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    format: Vec<String>,
    /// Markdown file in which the text between <!-- infergate:SECTION --> and <!-- /infergate --> is replaced
    #[arg(long, value_name = "FILE")]
    splice: Option<PathBuf>,
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
         cargo xtask report target/infergate/load.json --out report\n  \
         cargo xtask report receipt.json --splice README.md",
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
    let Report { files, out, format, splice, pull_request, json, keys } = asked;
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
    if let Some(document) = splice {
        written.note(into_document(document, &inputs, files));
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
            match ensure_not_read(&place, read).and_then(|()| write_bytes(&place, &file.bytes)) {
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

/// Replaces what stands between markers in a Markdown file.
fn into_document(path: &Path, inputs: &Inputs, files: &[PathBuf]) -> Result<()> {
    let text = read_text(path, MAX_DOCUMENT_BYTES)?;
    let names: Vec<String> =
        files.iter().filter_map(|file| file.file_name()).map(|name| name.to_string_lossy().into_owned()).collect();
    // One that a shell cannot be told on this line is left to the reader.
    let names: String = names.iter().map(|name| file(name).unwrap_or_else(|| " FILE".into())).collect();
    let command = format!("{} report{names}", inputs.program);
    let spliced =
        splice(&text, inputs, &topics::report(inputs), &command).with_context(|| format!("{}", path.display()))?;
    ensure!(spliced.len() as u64 <= MAX_DOCUMENT_BYTES, "{}: the document would be too large", path.display());
    if spliced != text {
        write_text(path, &spliced)?;
    }
    output::line(&format!("spliced: {}", path.display()));
    Ok(())
}
