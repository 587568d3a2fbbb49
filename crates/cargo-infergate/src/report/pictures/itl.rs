//! Every gap between tokens over the number of the token: pauses, drift and growth with the context.

use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::sections::request::typical;
use infergate::trace::Trace;

/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 1_500;

/// One chart, of the case of the request that stands for the run.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(request) = typical(inputs) else { return Vec::new() };
    let middle = gaps(&request.trace, "the middle request");
    if middle.is_empty() {
        return Vec::new();
    }
    let others = request.others.iter().flat_map(|trace| gaps(trace, "another request"));
    let others: Vec<Place> = others.take(MOST_POINTS).collect();
    let mut layers = Vec::new();
    if !others.is_empty() {
        layers.push(Layer::Points { name: "other requests".into(), points: others, look: Look::nth(7) });
    }
    let (name, look) = ("the request whose E2E is the middle one".into(), Look::nth(0));
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

fn gaps(trace: &Trace, whose: &str) -> Vec<Place> {
    let gaps = trace.itl_ns().into_iter().enumerate().take(MOST_POINTS);
    gaps.map(|(at, ns)| Place {
        x: (at + 2) as f64,
        y: ns as f64,
        hover: format!("token {} of {whose}: {}", at + 2, Unit::Ns.show(ns as f64)),
    })
    .collect()
}
