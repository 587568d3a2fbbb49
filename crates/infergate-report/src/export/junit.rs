//! JUnit XML, which every CI shows: one test a row of the verdict. What was not shown to pass is no passed test.

use anyhow::Result;
use serde_json::{Value, json};

use super::templates;
use crate::inputs::Inputs;
use crate::model::Report;
use crate::words;
use infergate_receipts::Outcome;

pub fn export(inputs: &Inputs, _: &Report) -> Result<String> {
    let Some(verdict) = &inputs.verdict else { return Ok(String::new()) };
    let test = |name: String, seconds: Option<String>, outcome: Outcome, message: String| {
        let kind = match outcome.exit_code() {
            0 => None,
            _ if verdict.exit_code == 0 => None,
            1 => Some("failure"),
            _ => Some("error"),
        };
        json!({ "name": name, "seconds": seconds, "kind": kind, "outcome": outcome.words(), "message": message })
    };
    let tests = verdict.rows.iter().map(|row| {
        // Head's time, as the format wants it.
        let seconds = row.time().and_then(|time| time.head_ns).map(|ns| format!("{:.9}", ns / 1e9));
        test(format!("{}: {}", row.subject, words::what(row)), seconds, row.outcome, words::decided(row))
    });
    let mut tests: Vec<Value> = tests.collect();
    let headline = words::headline::of(verdict);
    if verdict.exit_code != 0 && tests.iter().all(|test| test["kind"].is_null()) {
        // What keeps the whole run from a verdict stands in no row: a file whose tests all pass must not hide it.
        tests.push(test("the whole run".into(), None, verdict.verdict, headline.clone()));
    }
    let count = |kind: &str| tests.iter().filter(|test| test["kind"] == kind).count();
    let (failures, errors) = (count("failure"), count("error"));
    let values = json!({ "tests": tests, "failures": failures, "errors": errors, "headline": headline });
    templates::render("junit.xml.jinja", include_str!("../../templates/junit.xml.jinja"), values)
}
