//! Every gap between tokens over the number of the token: pauses, drift and growth with the context.

use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::sections::request::of_run;
use infergate_core::trace::Trace;

/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 600;

/// One chart, of the case of the request that stands for the run.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(request) = of_run(inputs) else { return Vec::new() };
    let middle = gaps(&request.trace);
    if middle.is_empty() {
        return Vec::new();
    }
    // A part of each, so that none goes without.
    let all: Vec<Place> = request.others.iter().flat_map(gaps).collect();
    let every = all.len().div_ceil(MOST_POINTS).max(1);
    let others = all.into_iter().step_by(every).map(|place| Place { hover: String::new(), ..place });
    let others: Vec<Place> = others.collect();
    let mut layers = Vec::new();
    if !others.is_empty() {
        layers.push(Layer::Points { name: "other requests".into(), points: others, look: Look::nth(2) });
    }
    let (name, look) = ("the request whose E2E is the middle one".into(), Look::head());
    layers.push(Layer::Line { name, points: middle, look, marked: true });
    vec![Chart {
        id: "itl".into(),
        title: format!("Inter-token latency of {}", request.case),
        caption: "The gap before each token. A flat line streams evenly; a slope is work that grows with the context; single \
                  high points are pauses."
            .into(),
        x: Axis::new("output token", Unit::Count),
        y: Axis::new("ITL", Unit::Ns).zero(),
        layers,
    }]
}

fn gaps(trace: &Trace) -> Vec<Place> {
    let gaps = trace.itl_ns().into_iter().enumerate().take(MOST_POINTS);
    gaps.map(|(at, ns)| Place {
        x: (at + 2) as f64,
        y: ns as f64,
        hover: format!("token {}: {}", at + 2, Unit::Ns.show(ns as f64)),
    })
    .collect()
}
