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
use super::units::listed;

/// Where pictures stand below the report's folder.
pub const PICTURES: &str = "pictures";

#[derive(Clone, PartialEq)]
pub struct File {
    /// Its name below the report's folder, made of this program's own words.
    pub name: String,
    pub text: String,
}

/// What an exporter cannot do without.
#[derive(PartialEq)]
pub enum Needs {
    Nothing,
    Verdict,
    /// A receipt of a run or of a load run. These are other programs' formats, which are written where they are asked for alone.
    Run,
}

pub struct Exporter {
    /// On the command line.
    pub name: &'static str,
    pub about: &'static str,
    needs: Needs,
    /// The name and the text of its page.
    page: Option<(&'static str, Text)>,
    /// Whether every picture comes with it.
    pictures: bool,
}

type Text = fn(&Inputs, &Report) -> Result<String>;

impl Exporter {
    const fn new(name: &'static str, about: &'static str, needs: Needs, file: &'static str, text: Text) -> Self {
        Self { name, about, needs, page: Some((file, text)), pictures: false }
    }

    /// The page that it writes where no format is asked for.
    pub fn usual_file(&self) -> Option<&'static str> {
        self.page.filter(|_| self.needs != Needs::Run).map(|(name, _)| name)
    }

    pub fn files(&self, inputs: &Inputs, report: &Report) -> Result<Vec<File>> {
        let mut files = if self.pictures { pictures(report) } else { Vec::new() };
        if let Some((name, text)) = self.page {
            files.insert(0, File { name: name.into(), text: text(inputs, report)? });
        }
        Ok(files)
    }

    /// What it needs and is not there.
    pub fn lacks(&self, inputs: &Inputs) -> Option<&'static str> {
        match self.needs {
            Needs::Verdict if inputs.verdict.is_none() && inputs.load.is_some() => {
                Some("a verdict, and a load receipt has none; take md, html, json, csv or svg")
            }
            Needs::Verdict if inputs.verdict.is_none() => {
                Some("a verdict; give one, or files that can be judged: a paired receipt, or two receipts")
            }
            Needs::Run if inputs.head.is_none() && inputs.load.is_none() => Some("a receipt of a run; give one"),
            _ => None,
        }
    }
}

pub const EXPORTERS: &[Exporter] = &[
    Exporter::new(
        "comment",
        "a pull-request comment, also for GITHUB_STEP_SUMMARY",
        Needs::Verdict,
        "comment.md",
        comment::export,
    ),
    Exporter {
        pictures: true,
        ..Exporter::new("md", "the whole report as Markdown", Needs::Nothing, "report.md", markdown::export)
    },
    Exporter::new("html", "the whole report as one self-contained page", Needs::Nothing, "report.html", html::export),
    Exporter::new(
        "json",
        "the whole report as JSON, numbers to the last bit",
        Needs::Nothing,
        "report.json",
        json::export,
    ),
    Exporter::new("csv", "every number, a line each, with its unit", Needs::Nothing, "report.csv", csv::export),
    Exporter { name: "svg", about: "pictures", needs: Needs::Nothing, page: None, pictures: true },
    Exporter::new("junit", "JUnit XML, a test a row of the verdict", Needs::Verdict, "junit.xml", junit::export),
    Exporter::new(
        "annotations",
        "workflow commands (::error) for GitHub Actions, to be printed",
        Needs::Verdict,
        "annotations.txt",
        annotations::export,
    ),
    Exporter::new("bencher", "Bencher metric format", Needs::Run, "bencher.json", trackers::bencher),
    Exporter::new(
        "github-benchmark",
        "github-action-benchmark, customSmallerIsBetter",
        Needs::Run,
        "github-benchmark.json",
        trackers::github_benchmark,
    ),
];

/// Every picture as an SVG file.
fn pictures(report: &Report) -> Vec<File> {
    let file = |chart: &Chart| File { name: format!("{PICTURES}/{}.svg", chart.id), text: svg::file(chart) };
    report.charts().map(file).collect()
}

/// The exporters of these names, or the usual ones that have what they need.
pub fn chosen(names: &[String], inputs: &Inputs) -> Result<Vec<&'static Exporter>> {
    if names.is_empty() {
        let usual = EXPORTERS.iter().filter(|exporter| exporter.needs != Needs::Run);
        return Ok(usual.filter(|exporter| exporter.lacks(inputs).is_none()).collect());
    }
    let mut chosen: Vec<&Exporter> = Vec::new();
    for name in names {
        let Some(exporter) = EXPORTERS.iter().find(|exporter| exporter.name == name) else {
            let known = listed(EXPORTERS.iter().map(|exporter| exporter.name));
            bail!("--format: '{name}' is no format; there are {known}");
        };
        if let Some(missing) = exporter.lacks(inputs) {
            bail!("--format {name}: it needs {missing}");
        }
        if chosen.iter().all(|known| known.name != exporter.name) {
            chosen.push(exporter);
        }
    }
    Ok(chosen)
}
