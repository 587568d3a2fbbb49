//! Throughput of vLLM's benchmark beside that of the same loads here.

use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::sections::vllm::{name, same};

/// Lines of more runs than this cannot be read.
const MOST: usize = 40;

/// One chart, where some run has a level here.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let both = |result| Some((name(result), result.output_throughput?, same(result, inputs)?.system_tokens_per_s?));
    let known: Vec<(String, f64, f64)> = inputs.vllm.iter().filter_map(both).take(MOST).collect();
    if known.is_empty() {
        return Vec::new();
    }
    // The first run stands on top.
    let lanes = || known.iter().rev().enumerate();
    let place = |at: usize, rate: f64, whose: &str| Place {
        x: rate,
        y: at as f64,
        hover: format!("{whose}: {}", Unit::TokensPerS.show(rate)),
    };
    let theirs = lanes().map(|(at, (_, rate, _))| place(at, *rate, "vLLM bench serve")).collect();
    let ours = lanes().map(|(at, (_, _, rate))| place(at, *rate, "here")).collect();
    vec![Chart {
        id: "vllm".into(),
        title: "Throughput beside vLLM bench serve".into(),
        caption: "Output tokens a second, of each run that has a level of the same load here. Farther right is faster."
            .into(),
        x: Axis::new("output throughput", Unit::TokensPerS).zero(),
        y: Axis::named("load", lanes().map(|(_, (name, ..))| name.clone()).collect()),
        layers: vec![
            Layer::Points { name: "vLLM bench serve".into(), points: theirs, look: Look::nth(1) },
            Layer::Points { name: "here".into(), points: ours, look: Look::head() },
        ],
    }]
}
