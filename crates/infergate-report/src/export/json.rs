//! The report as JSON: the numbers to the last bit, and what a person reads.

use anyhow::Result;
use serde::Serialize;

use crate::inputs::Inputs;
use crate::model::Report;
use infergate_receipts::to_json;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

pub fn export(_: &Inputs, report: &Report) -> Result<String> {
    to_json(&Document { schema: "infergate.report/1", report })
}
