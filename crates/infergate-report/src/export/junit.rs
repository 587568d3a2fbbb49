//! JUnit XML, which every CI shows: one test a row of the verdict. What was not shown to pass is no passed test.

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::templates;
use crate::inputs::Inputs;
use crate::model::Report;
use crate::words;
use infergate_receipts::{Outcome, VerdictRow};

#[derive(Serialize)]
struct Test {
    name: String,
    /// Head's time, as the format wants it.
    seconds: Option<String>,
    /// `failure` or `error`; `None` for a test that passed.
    kind: Option<&'static str>,
    outcome: &'static str,
    message: String,
}

impl Test {
    fn new(name: String, outcome: Outcome, message: String) -> Self {
        let kind = match outcome.exit_code() {
            0 => None,
            1 => Some("failure"),
            _ => Some("error"),
        };
        Self { name, seconds: None, kind, outcome: outcome.words(), message }
    }

    fn of(row: &VerdictRow) -> Self {
        let test = Self::new(format!("{}: {}", row.subject, words::what(row)), row.outcome, words::decided(row));
        let head_ns = row.time().and_then(|time| time.head_ns);
        Self { seconds: head_ns.map(|ns| format!("{:.9}", ns / 1e9)), ..test }
    }
}

pub fn export(inputs: &Inputs, _: &Report) -> Result<String> {
    let Some(verdict) = &inputs.verdict else { return Ok(String::new()) };
    let headline = words::headline::of(verdict);
    let mut tests: Vec<Test> = verdict.rows.iter().map(Test::of).collect();
    if verdict.exit_code == 0 {
        tests.iter_mut().for_each(|test| test.kind = None);
    } else if tests.iter().all(|test| test.kind.is_none()) {
        // What keeps the whole run from a verdict stands in no row: a file whose tests all pass must not hide it.
        tests.push(Test::new("the whole run".into(), verdict.verdict, headline.clone()));
    }
    let count = |kind: &str| tests.iter().filter(|test| test.kind == Some(kind)).count();
    let (failures, errors) = (count("failure"), count("error"));
    let values = json!({ "tests": tests, "failures": failures, "errors": errors, "headline": headline });
    templates::render("junit.xml.jinja", values)
}
