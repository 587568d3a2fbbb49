//! `customSmallerIsBetter` of github-action-benchmark: a list of names, units and values.

use anyhow::Result;
use serde::Serialize;

use super::File;
use crate::inputs::Inputs;
use crate::load::{Point, View};
use crate::model::Report;
use infergate_core::stats::sample_std;
use infergate_judge::summary_ns;
use infergate_receipts::{CaseRecord, Metric, to_json};

#[derive(Serialize)]
struct Entry {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
}

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let cases = inputs.head.iter().flat_map(|receipt| &receipt.cases);
    let view = View::of(inputs);
    let points = view.iter().flat_map(|view| view.digest.points.iter().flat_map(move |point| of_load(view, point)));
    let entries: Vec<Entry> = cases.filter_map(entry).chain(points).collect();
    Ok(vec![File::new("github-benchmark.json", to_json(&entries)?)])
}

fn of_load(view: &View<'_>, point: &Point) -> Vec<Entry> {
    let of = |metric: Metric| {
        let name = format!("{} {}", view.place_name(point), metric.key_in("ns"));
        Some(Entry { name, unit: "ns", value: point.p50(metric)?, range: None })
    };
    [Metric::Ttft, Metric::Itl, Metric::E2e].into_iter().filter_map(of).collect()
}

/// The time a case is judged by, and its deviation over all samples.
fn entry(case: &CaseRecord) -> Option<Entry> {
    let times: Vec<f64> = case.processes.iter().flat_map(|process| process.times_ns()).collect();
    Some(Entry {
        name: format!("{} {}", case.id, Metric::gated(case.id).key_in("ns")),
        unit: "ns",
        value: summary_ns(&case.processes)?,
        range: sample_std(&times).map(|std| format!("± {std}")),
    })
}
