//! Reports as files. An exporter is one file here and one line in [`EXPORTERS`]; it reads the report and, where another
//! program's format asks for more, the inputs. It never reads a sentence.

mod annotations;
mod comment;
mod csv;
mod html;
pub mod json;
mod junit;
pub mod markdown;
pub mod markup;
mod templates;
mod trackers;

use anyhow::{Result, bail};

use super::inputs::Inputs;
use super::model::{Chart, Report};
use super::svg;

/// Where pictures stand below the report's folder.
pub const PICTURES: &str = "pictures";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name below the report's folder, made of this program's own words.
    pub name: String,
    pub text: String,
}

impl File {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

#[derive(Clone, Copy)]
pub struct Exporter {
    /// On the command line.
    pub name: &'static str,
    pub about: &'static str,
    /// Whether it is written where no format is asked for.
    pub is_usual: bool,
    /// What it needs and is not there.
    pub lacks: Lacks,
    pub export: Export,
}

type Lacks = fn(&Inputs) -> Option<&'static str>;
type Export = fn(&Inputs, &Report) -> Result<Vec<File>>;

const fn usual(name: &'static str, about: &'static str, lacks: Lacks, export: Export) -> Exporter {
    Exporter { name, about, is_usual: true, lacks, export }
}

const fn other(name: &'static str, about: &'static str, lacks: Lacks, export: Export) -> Exporter {
    Exporter { name, about, is_usual: false, lacks, export }
}

pub const EXPORTERS: &[Exporter] = &[
    usual("comment", "a pull-request comment, also for GITHUB_STEP_SUMMARY", no_verdict, comment::export),
    usual("md", "the whole report as Markdown", nothing, markdown::export),
    usual("html", "the whole report as one self-contained page", nothing, html::export),
    usual("json", "the whole report as JSON, numbers to the last bit", nothing, json::export),
    usual("csv", "every number, a line each, with its unit", nothing, csv::export),
    usual("svg", "pictures", nothing, |_, report| Ok(pictures(report))),
    usual("junit", "JUnit XML, a test a row of the verdict", no_verdict, junit::export),
    usual(
        "annotations",
        "workflow commands (::error) for GitHub Actions, to be printed",
        no_verdict,
        annotations::export,
    ),
    other("bencher", "Bencher metric format", no_run, trackers::bencher),
    other("github-benchmark", "github-action-benchmark, customSmallerIsBetter", no_run, trackers::github_benchmark),
];

/// The pages that are written where no format is asked for.
pub const USUAL_FILES: &[&str] =
    &["comment.md", "report.md", "report.html", "report.json", "report.csv", "junit.xml", "annotations.txt"];

fn nothing(_: &Inputs) -> Option<&'static str> {
    None
}

/// What a format lacks that says nothing without a verdict.
fn no_verdict(inputs: &Inputs) -> Option<&'static str> {
    match (&inputs.verdict, &inputs.load) {
        (Some(_), _) => None,
        (None, Some(_)) => Some("a verdict, and a load receipt has none; take md, html, json, csv or svg"),
        (None, None) => Some("a verdict; give one, or files that can be judged: a paired receipt, or two receipts"),
    }
}

/// What a format lacks that takes a run or a load run.
fn no_run(inputs: &Inputs) -> Option<&'static str> {
    (inputs.head.is_none() && inputs.load.is_none()).then_some("a receipt of a run; give one")
}

/// Every picture as an SVG file.
fn pictures(report: &Report) -> Vec<File> {
    let file = |chart: &Chart| File::new(format!("{PICTURES}/{}.svg", chart.id), svg::file(chart));
    report.charts().map(file).collect()
}

/// The exporters of these names, or the usual ones that have what they need.
pub fn chosen(names: &[String], inputs: &Inputs) -> Result<Vec<Exporter>> {
    if names.is_empty() {
        let usual = EXPORTERS.iter().copied().filter(|exporter| exporter.is_usual);
        return Ok(usual.filter(|exporter| (exporter.lacks)(inputs).is_none()).collect());
    }
    let mut chosen: Vec<Exporter> = Vec::new();
    for name in names {
        let found = EXPORTERS.iter().copied().find(|exporter| exporter.name == name.as_str());
        let Some(exporter) = found else {
            let known: Vec<&str> = EXPORTERS.iter().map(|exporter| exporter.name).collect();
            bail!("--format: '{name}' is no format; there are {}", known.join(", "));
        };
        if let Some(missing) = (exporter.lacks)(inputs) {
            bail!("--format {name}: it needs {missing}");
        }
        if chosen.iter().all(|known| known.name != exporter.name) {
            chosen.push(exporter);
        }
    }
    Ok(chosen)
}
