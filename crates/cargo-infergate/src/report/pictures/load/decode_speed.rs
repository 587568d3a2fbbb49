//! Decode speed of each user over the number of users, with the speed at which people read.

use super::{left_out, lines, quartiles};
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::view::View;
use crate::report::model::{Axis, Chart, Layer, Look, Unit};
use crate::report::sections::load::decode_speed::READING_TOKENS_PER_S;

/// One chart, where more than one load ran.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(view) = View::of(inputs) else { return Vec::new() };
    let metric = Metric::DecodeSpeed;
    let lines = lines(&view, Unit::of(metric), |point| point.spread(metric).p50);
    if lines.is_empty() {
        return Vec::new();
    }
    let (slow, fast) = READING_TOKENS_PER_S;
    let mut layers = vec![reading()];
    if let [series] = view.series()[..] {
        layers.extend(quartiles(&view, series, metric, "P25 to P75".into(), Look::nth(0)));
    }
    layers.extend(lines);
    vec![Chart {
        id: "load-decode-speed".into(),
        title: "Decode speed of each user".into(),
        caption: format!(
            "Median tokens a second that one user receives. People read {slow:.0} to {fast:.0} tokens a second: above it a faster \
             stream is no gain for a reader.{}",
            left_out(&view)
        ),
        x: view.axis(),
        y: Axis::new("decode speed", Unit::of(metric)).zero().including(fast),
        layers,
    }]
}

/// The speed at which people read.
fn reading() -> Layer {
    let (from, to) = READING_TOKENS_PER_S;
    Layer::Zone { name: format!("reading speed, {from:.0} to {to:.0} tokens/s"), from, to, look: Look::ink() }
}
