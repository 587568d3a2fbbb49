//! Reports as files. An exporter is one file here and one line in [`EXPORTERS`]; it reads the report and, where another
//! program's format asks for more, the inputs. It never reads a sentence.

mod aiperf;
mod annotations;
mod bencher;
mod comment;
mod csv;
mod github_benchmark;
mod html;
pub mod json;
mod junit;
mod llama_bench;
mod llama_bench_table;
mod load_levels;
pub mod markdown;
pub mod markup;
mod openmetrics;
#[cfg(feature = "png")]
mod png;
mod svg;
mod vllm;

use anyhow::{Result, bail, ensure};

use super::inputs::Inputs;
use super::model::Report;

/// Where pictures stand below the report's folder.
pub const PICTURES: &str = "pictures";

/// What an exporter writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name below the report's folder, made of this program's own words.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl File {
    /// A file of text.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), bytes: text.into().into_bytes() }
    }
}

/// One format.
pub trait Exporter: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it is for, in a few words.
    fn about(&self) -> &'static str;

    /// Whether it is written where no format is asked for.
    fn is_usual(&self) -> bool {
        false
    }

    /// What it needs and is not there.
    fn lacks(&self, _inputs: &Inputs) -> Option<&'static str> {
        None
    }

    /// The files.
    ///
    /// # Errors
    /// What cannot be drawn or written down.
    fn export(&self, inputs: &Inputs, report: &Report) -> Result<Vec<File>>;
}

/// All of them.
pub const EXPORTERS: &[&dyn Exporter] = &[
    &comment::Comment,
    &markdown::Markdown,
    &html::Html,
    &json::Json,
    &csv::Csv,
    &svg::Svg,
    #[cfg(feature = "png")]
    &png::Png,
    &junit::Junit,
    &annotations::Annotations,
    &bencher::Bencher,
    &github_benchmark::GithubBenchmark,
    &llama_bench::LlamaBench,
    &llama_bench_table::LlamaBenchTable,
    &openmetrics::OpenMetrics,
    &vllm::Vllm,
    &aiperf::Aiperf,
];

/// The pages that are written where no format is asked for.
pub const USUAL_FILES: &[&str] =
    &["comment.md", "report.md", "report.html", "report.json", "report.csv", "junit.xml", "annotations.txt"];

/// What a format lacks that says nothing without a verdict.
fn no_verdict(inputs: &Inputs) -> Option<&'static str> {
    match (&inputs.verdict, &inputs.load) {
        (Some(_), _) => None,
        (None, Some(_)) => Some("a verdict, and a load receipt has none; take md, html, json, csv, svg or png"),
        (None, None) => Some("a verdict; give one, or files that can be judged: a paired receipt, or two receipts"),
    }
}

/// What a format of a suite's cases lacks.
fn no_run(inputs: &Inputs) -> Option<&'static str> {
    match (&inputs.head, &inputs.load) {
        (Some(_), _) => None,
        (None, Some(_)) => {
            Some("the cases of a run, and a load receipt has none; take bencher, github-benchmark or openmetrics")
        }
        (None, None) => Some("a receipt of a run; give one"),
    }
}

/// What a format lacks that takes a run or a load run.
fn no_run_or_load(inputs: &Inputs) -> Option<&'static str> {
    if inputs.load.is_some() { None } else { no_run(inputs) }
}

/// The exporters of these names, or the usual ones that have what they need.
///
/// # Errors
/// A name that is none, or a format that lacks what it needs.
pub fn chosen(names: &[String], inputs: &Inputs) -> Result<Vec<&'static dyn Exporter>> {
    if names.is_empty() {
        let usual = EXPORTERS.iter().copied().filter(|exporter| exporter.is_usual());
        return Ok(usual.filter(|exporter| exporter.lacks(inputs).is_none()).collect());
    }
    let mut chosen: Vec<&'static dyn Exporter> = Vec::new();
    for name in names {
        let found = EXPORTERS.iter().copied().find(|exporter| exporter.name() == name);
        let Some(exporter) = found else {
            ensure!(
                name != "png",
                "--format png: this build of the command draws no PNG (its feature `png` is off); use svg, or install the command with \
                 its default features"
            );
            let known: Vec<&str> = EXPORTERS.iter().map(|exporter| exporter.name()).collect();
            bail!("--format: '{name}' is no format; there are {}", known.join(", "));
        };
        if let Some(missing) = exporter.lacks(inputs) {
            bail!("--format {name}: it needs {missing}");
        }
        if chosen.iter().all(|known| known.name() != exporter.name()) {
            chosen.push(exporter);
        }
    }
    Ok(chosen)
}
