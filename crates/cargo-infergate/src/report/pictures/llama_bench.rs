//! Rates of llama-bench's tests beside those of the same cases here.

use crate::report::inputs::Inputs;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::sections::llama_bench::{rate, same};

/// Lines of more tests than this cannot be read.
const MOST: usize = 40;

/// One chart, where some test has a case here.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let known = inputs.llama_bench.iter().filter_map(|test| Some((test, rate(same(test, inputs)?)?)));
    let known: Vec<_> = known.take(MOST).collect();
    if known.is_empty() {
        return Vec::new();
    }
    // The first test stands on top.
    let lanes = || known.iter().rev().enumerate();
    let place = |at: usize, rate: f64, whose: &str| Place {
        x: rate,
        y: at as f64,
        hover: format!("{whose}: {}", Unit::TokensPerS.show(rate)),
    };
    let theirs = lanes().map(|(at, (test, _))| place(at, test.avg_ts, "llama-bench")).collect();
    let ours = lanes().map(|(at, (_, rate))| place(at, *rate, "here")).collect();
    vec![Chart {
        id: "llama-bench".into(),
        title: "Rates beside llama-bench's".into(),
        caption: "Mean rate of prompt and output tokens together, of each test that has a case here. Farther right is faster.".into(),
        x: Axis::new("rate", Unit::TokensPerS).zero(),
        y: Axis::named("test", lanes().map(|(_, (test, _))| test.name()).collect()),
        layers: vec![
            Layer::Points { name: "llama-bench".into(), points: theirs, look: Look::nth(1) },
            Layer::Points { name: "here".into(), points: ours, look: Look::head() },
        ],
    }]
}
