//! Results inside a document: the text between two markers is replaced by a section of a report, with the command and the
//! machine that made it.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};

use super::export::markdown::body;
use super::export::markup::{code, table};
use super::inputs::Inputs;
use super::model::{Report, Section};
use infergate_core::printable::printable;

/// Begins a marker: `<!-- infergate:latency -->`, `<!-- infergate:latency.figures -->`.
const BEGIN: &str = "<!-- infergate:";
/// Ends what is replaced.
const END: &str = "<!-- /infergate -->";

/// `document` with every marked part anew. A marker is a line of its own: one inside a line is text, of a model's name perhaps.
pub fn splice(document: &str, inputs: &Inputs, report: &Report, command: &str) -> Result<String> {
    let mut text = String::with_capacity(document.len());
    let mut lines = document.split_inclusive('\n');
    let mut count = 0;
    while let Some(line) = lines.next() {
        text += line;
        let Some(name) = begins(line)? else { continue };
        loop {
            let old = lines.next().with_context(|| format!("{BEGIN}{name} --> is not followed by {END}"))?;
            ensure!(begins(old)?.is_none(), "{BEGIN}{name} --> is not followed by {END} before the next marker");
            if old.trim() == END {
                let _ = write!(text, "{}\n\n{}\n{old}", part(report, name)?.trim_end(), made_by(inputs, command));
                break;
            }
        }
        count += 1;
    }
    ensure!(
        count > 0,
        "it has no marker; put {BEGIN}latency --> and {END} on lines of their own where the text belongs"
    );
    Ok(text)
}

/// The name in a line that begins a part.
fn begins(line: &str) -> Result<Option<&str>> {
    let Some(rest) = line.trim().strip_prefix(BEGIN) else { return Ok(None) };
    let (name, after) = rest.split_once("-->").context("a marker is not closed by -->")?;
    ensure!(after.is_empty(), "{BEGIN}{}--> has text behind it; put it on a line of its own", printable(name));
    Ok(Some(name.trim()))
}

/// A section, or one table of it.
fn part(report: &Report, name: &str) -> Result<String> {
    let (section, found) = name.split_once('.').map_or((name, None), |(section, table)| (section, Some(table)));
    let Some(section) = report.section(section) else {
        let known: Vec<&str> = report.sections.iter().map(|section| section.id).collect();
        bail!("the report has no section '{section}'; it has {}", known.join(", "));
    };
    match found {
        None => Ok(body(section, false)),
        Some(id) => one_table(section, id),
    }
}

fn one_table(section: &Section, id: &str) -> Result<String> {
    let found = section.tables().find(|table| table.id == id);
    let known: Vec<&str> = section.tables().map(|table| table.id.as_str()).collect();
    let found =
        found.with_context(|| format!("section '{}' has no table '{id}'; it has {}", section.id, known.join(", ")))?;
    let found = found.for_pages();
    Ok(format!("\n{}", table(&found, &found.rows)))
}

/// Which command made it, of what, where.
fn made_by(inputs: &Inputs, command: &str) -> String {
    let subject = inputs.subject();
    let of = subject.map_or_else(String::new, |subject| {
        let model = code(&subject.engine.model, false);
        let machine = code(&subject.machine.class, false);
        format!(", from a run of {model} on {machine}, {}", code(subject.created, false))
    });
    let load = inputs.load.as_ref().filter(|_| subject.is_none());
    let of = load.map_or(of, |run| {
        format!(", from a load run from {}, {}", code(&run.machine.class, false), code(&run.created, false))
    });
    format!("Made by {}{of}.", code(command, false))
}
