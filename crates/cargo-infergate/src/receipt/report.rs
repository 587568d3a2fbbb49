//! A report as a file: every table with its numbers as they are and as they are shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::Outcome;

/// Schema name of a [`ReportFile`].
pub const REPORT_SCHEMA: &str = "infergate.report/1";

/// What `report --format json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportFile {
    /// [`REPORT_SCHEMA`].
    pub schema: String,
    /// What was measured, in one line.
    pub title: String,
    /// The decision; `null` where nothing was judged.
    pub verdict: Option<ReportVerdict>,
    /// In the order they are read.
    pub sections: Vec<ReportSection>,
}

/// The decision in short.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportVerdict {
    /// How it ended.
    pub outcome: Outcome,
    /// The process's exit code.
    pub exit_code: i32,
    /// What happened, in one sentence; `null` in an older file where nothing was to be added.
    pub why: Option<String>,
}

/// One part of a report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportSection {
    /// Its name: `latency`.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it says in sentences.
    pub said: Vec<String>,
    /// Its tables.
    pub tables: Vec<ReportTable>,
    /// What follows from the numbers.
    pub findings: Vec<ReportFinding>,
    /// The names of its pictures' files, without their endings.
    pub pictures: Vec<String>,
}

/// Numbers in rows and columns.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportTable {
    /// Its name, one of a kind in its section.
    pub id: String,
    /// Its heading; empty where the section's says it.
    pub title: String,
    /// What each column holds.
    pub columns: Vec<ReportColumn>,
    /// One entry a column in each.
    pub rows: Vec<Vec<ReportCell>>,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportColumn {
    /// Its name.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it means; empty where the heading says it.
    pub about: String,
}

/// One entry of a table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportCell {
    /// As a person reads it; an em dash where there is no number.
    pub text: String,
    /// The number; `null` for words, and where there is none.
    pub value: Option<f64>,
    /// The lower end of its interval; `null` where none is known.
    pub low: Option<f64>,
    /// The upper end of its interval.
    pub high: Option<f64>,
    /// What the numbers count: `ns`, `bytes`, `tokens/s`, `fraction`.
    pub unit: Option<String>,
    /// Why there is no number.
    pub why_missing: Option<String>,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportFinding {
    /// `good`, `bad`, `warn` or `plain`.
    pub tone: String,
    /// One sentence.
    pub said: String,
    /// The figures it rests on.
    pub rests_on: Vec<ReportFigure>,
}

/// A number that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportFigure {
    /// What it is of.
    pub name: String,
    /// The number.
    pub value: f64,
    /// What it counts.
    pub unit: String,
}
