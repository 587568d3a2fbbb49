//! The metric format of bencher.dev: by name, by measure, a value with its ends.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::File;
use crate::figures::{self, Spread};
use crate::inputs::Inputs;
use crate::load::{Metric, Point, Rank, View};
use crate::model::Report;
use infergate_receipts::{CaseRecord, to_json};

#[derive(Serialize)]
struct Measure {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

pub fn export(inputs: &Inputs, _: &Report) -> Result<Vec<File>> {
    let cases = inputs.head.iter().flat_map(|receipt| &receipt.cases);
    let mut document: BTreeMap<String, BTreeMap<String, Measure>> =
        cases.map(|case| (case.id.to_string(), measures(case))).collect();
    if let Some(view) = View::of(inputs) {
        document.extend(view.digest.points.iter().map(|point| (view.place_name(point), of_load(point))));
    }
    Ok(vec![File::new("bencher.json", to_json(&document)?)])
}

/// The median of each figure of a level between its quartiles.
fn of_load(point: &Point) -> BTreeMap<String, Measure> {
    let of = |metric: Metric| {
        let [lower_value, p50, upper_value] =
            [Rank::P25, Rank::P50, Rank::P75].map(|rank| point.spread(metric).at(rank));
        Some((metric.key_in("ns"), Measure { value: p50?, lower_value, upper_value }))
    };
    let figures = [Metric::Ttft, Metric::Itl, Metric::E2e, Metric::DecodeSpeed, Metric::OutputThroughput];
    figures.into_iter().filter_map(of).collect()
}

/// Each figure by a name that says its unit, between its smallest and its largest sample.
fn measures(case: &CaseRecord) -> BTreeMap<String, Measure> {
    let of = |figure: Metric| {
        let spread = Spread::of(figure, case);
        let number = |cell: crate::model::Cell| cell.quantity().map(|quantity| quantity.value);
        let measure = Measure {
            value: figures::summary(figure, case)?,
            lower_value: number(spread.min()),
            upper_value: number(spread.max()),
        };
        Some((figure.key_in("ns"), measure))
    };
    figures::of_phase(case.id.phase()).iter().copied().filter_map(of).collect()
}
