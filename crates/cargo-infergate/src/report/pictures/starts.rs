//! Time to first token in parts: a fresh process, and the next request.

use crate::receipt::TtftParts;
use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Unit};
use crate::report::sections::request::middle_start;

/// One chart, where both a cold and a warm start were measured.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(receipt) = &inputs.head else { return Vec::new() };
    let (Some(cold), Some(warm)) = (middle_start(&receipt.cold), middle_start(&receipt.warm)) else {
        return Vec::new();
    };
    let layers: Vec<Layer> = spans(cold, 1.0).into_iter().chain(spans(warm, 0.0)).collect();
    vec![Chart {
        id: "starts".into(),
        title: "Time to first token in parts".into(),
        caption: format!(
            "Cold: the first token of a fresh process, {}. Warm: the next request, {}. Both of {} prompt tokens.",
            Unit::Ns.show(cold.ttft_ns() as f64),
            Unit::Ns.show(warm.ttft_ns() as f64),
            cold.prompt_tokens
        ),
        x: Axis::new("time since the request", Unit::Ns).zero(),
        y: Axis::named("", vec!["warm".into(), "cold".into()]),
        layers,
    }]
}

fn spans(parts: &TtftParts, y: f64) -> Vec<Layer> {
    let mut from = 0.0;
    let mut spans = Vec::new();
    for (at, (name, ns)) in [
        ("load", parts.load_ns),
        ("tokenize", parts.tokenize_ns),
        ("prefill", Some(parts.prefill_ns)),
        ("first sample", parts.first_sample_ns),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(ns) = ns.map(|ns| ns as f64) else { continue };
        let shown = Unit::Ns.show(ns);
        let look = Look::nth(at);
        spans.push(Layer::Span {
            name: name.into(),
            label: shown.clone(),
            from,
            to: from + ns,
            y,
            hover: format!("{name}: {shown}"),
            look,
        });
        from += ns;
    }
    spans
}
