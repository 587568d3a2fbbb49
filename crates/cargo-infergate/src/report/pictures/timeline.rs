//! The timeline of one real request: what TTFT, ITL, generation time and E2E are.

use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::sections::request::{Request, of_run};

/// Lanes, from the lowest.
const LANES: [&str; 5] = ["E2E", "generation", "ITL", "TTFT", "tokens"];

/// Gaps and tokens that are drawn, the first of them; more run into each other.
const MOST_TOKENS: usize = 400;

/// One chart, of the request that stands for the run.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    of_run(inputs).as_ref().and_then(chart).into_iter().collect()
}

fn chart(request: &Request) -> Option<Chart> {
    let trace = &request.trace;
    let (first, last) = (trace.ttft_ns()? as f64, trace.e2e_ns()? as f64);
    let times: Vec<f64> = trace.token_ns().iter().map(|ns| *ns as f64).collect();
    let span = |label: &str, from: f64, to: f64, y: f64, n: usize| Layer::Span {
        name: String::new(),
        label: label.into(),
        from,
        to,
        y,
        hover: format!("{label}: {}", Unit::Ns.show(to - from)),
        look: Look::nth(n),
    };
    let mut layers = vec![
        span(&format!("E2E {}", Unit::Ns.show(last)), 0.0, last, 0.0, 3),
        span(&format!("TTFT {}", Unit::Ns.show(first)), 0.0, first, 3.0, 0),
    ];
    if let Some(generation) = trace.generation_ns() {
        let label = format!("generation time {}", Unit::Ns.show(generation as f64));
        layers.push(span(&label, first, last, 1.0, 1));
    }
    for (at, gap) in times.windows(2).enumerate().take(MOST_TOKENS) {
        // Two shades in turn, so that neighbours are told apart.
        layers.push(span(&format!("ITL of token {}", at + 2), gap[0], gap[1], 2.0, 2 * (at % 2)));
    }
    let points = times.iter().enumerate().take(MOST_TOKENS).map(|(at, x)| {
        let hover = format!("token {} after {}", at + 1, Unit::Ns.show(*x));
        Place { x: *x, y: 4.0, hover }
    });
    layers.push(Layer::Points { name: String::new(), points: points.collect(), look: Look::head() });
    Some(Chart {
        id: "timeline".into(),
        title: format!("One request of {}", request.case),
        caption: format!(
            "A real request, from the moment it was handed over. The first of {} tokens ends the TTFT; each further one ends an \
             ITL; the last ends the generation time and the E2E.",
            times.len()
        ),
        x: Axis::new("time since the request", Unit::Ns).zero(),
        y: Axis::named("figure", LANES.map(String::from).to_vec()),
        layers,
    })
}
