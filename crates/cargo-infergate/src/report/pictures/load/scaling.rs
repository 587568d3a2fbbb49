//! Scaling efficiency over the number of users.

use super::{left_out, lines};
use crate::report::inputs::Inputs;
use crate::report::load::view::View;
use crate::report::model::{Axis, Chart, Layer, Look, Unit};

/// One chart, where more than one number of users ran, one of them alone.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(view) = View::of(inputs) else { return Vec::new() };
    let lines = lines(&view, Unit::Fraction, |point| point.scaling);
    if lines.is_empty() {
        return Vec::new();
    }
    let ideal = Layer::Zone { name: "ideal".into(), from: 1.0, to: 1.0, look: Look::ink() };
    vec![Chart {
        id: "load-scaling".into(),
        title: "Scaling efficiency".into(),
        caption: format!(
            "Output of all users / (users x output of one alone). At 100 % each user is as fast as one alone; at 100 % / users more \
             users add nothing.{}",
            left_out(&view)
        ),
        x: view.axis(),
        y: Axis::new("scaling efficiency", Unit::Fraction).zero().including(1.0),
        layers: [ideal].into_iter().chain(lines).collect(),
    }]
}
