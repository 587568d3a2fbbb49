//! Files for programs that keep numbers over time: bencher.dev, and github-action-benchmark's `customSmallerIsBetter`.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use crate::figures::{self, CaseFigure};
use crate::inputs::Inputs;
use crate::load::Metric;
use crate::model::Report;
use infergate_receipts::to_json;

/// A number of a case or a level of load, and where its samples lie.
struct Figure {
    subject: String,
    metric: Metric,
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// By name, by metric, a value with its ends.
pub fn bencher(inputs: &Inputs, _: &Report) -> Result<String> {
    let mut document: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for Figure { subject, metric, value, low, high } in figures(inputs) {
        let ends = json!({ "value": value, "lower_value": low, "upper_value": high });
        document.entry(subject).or_default().insert(metric.key_in("ns"), ends);
    }
    to_json(&document)
}

/// A list of names, units and values, of times alone: of a rate more is better.
pub fn github_benchmark(inputs: &Inputs, _: &Report) -> Result<String> {
    let times = figures(inputs).into_iter().filter(|figure| !figure.metric.is_rate());
    let entry = |Figure { subject, metric, value, low, high }: Figure| {
        let range = low.zip(high).map(|(low, high)| format!("{low} to {high}"));
        json!({ "name": format!("{subject} {}", metric.key_in("ns")), "unit": "ns", "value": value, "range": range })
    };
    to_json(&times.map(entry).collect::<Vec<Value>>())
}

/// The median of each figure: of a case between its smallest and its largest sample, of a level between its quartiles.
fn figures(inputs: &Inputs) -> Vec<Figure> {
    let mut found = Vec::new();
    for case in inputs.head.iter().flat_map(|receipt| &receipt.cases) {
        for &metric in figures::of_phase(case.id.phase()) {
            let Some(value) = figures::summary(metric, case) else { continue };
            let spread = CaseFigure::of(metric, case);
            let (low, high) = (spread.min().value(), spread.max().value());
            found.push(Figure { subject: case.id.to_string(), metric, value, low, high });
        }
    }
    let Some(view) = &inputs.load else { return found };
    for point in &view.points {
        for metric in [Metric::Ttft, Metric::Itl, Metric::E2e, Metric::DecodeSpeed, Metric::OutputThroughput] {
            let [low, median, high] = [0.25, 0.5, 0.75].map(|p| point.spread(metric).at(p));
            let subject = view.place_name(point);
            found.extend(median.map(|value| Figure { subject, metric, value, low, high }));
        }
    }
    found
}
