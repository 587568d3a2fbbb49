//! Between the best and the worst scenario at each load.

use super::decode_speed::reading;
use super::look;
use crate::load::judge::load;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::metric::Metric;
use crate::report::load::view::View;
use crate::report::model::{Axis, Chart, Layer, Place, Stretch};
use crate::report::sections::load::range::{Range, ranges, series_name};

/// Decode speed.
pub fn decode_speed(inputs: &Inputs) -> Vec<Chart> {
    let drawn = Drawn {
        metric: Metric::DecodeSpeed,
        id: "load-decode-range",
        title: "Decode speed of each user, by scenario",
        ends: ("slowest scenario", "fastest scenario"),
        below: Some(reading()),
    };
    charts(inputs, drawn)
}

/// Time to first token.
pub fn ttft(inputs: &Inputs) -> Vec<Chart> {
    let drawn = Drawn {
        metric: Metric::Ttft,
        id: "load-ttft-range",
        title: "Time to first token, by scenario",
        ends: ("shortest", "longest"),
        below: None,
    };
    charts(inputs, drawn)
}

/// What one chart shows.
struct Drawn {
    metric: Metric,
    id: &'static str,
    title: &'static str,
    ends: (&'static str, &'static str),
    below: Option<Layer>,
}

fn charts(inputs: &Inputs, drawn: Drawn) -> Vec<Chart> {
    let Some(view) = View::of(inputs) else { return Vec::new() };
    let ranges = ranges(&view, drawn.metric);
    if ranges.len() < 2 {
        return Vec::new();
    }
    let unit = drawn.metric.unit();
    let place = |(point, value): (&Point, f64)| Place {
        x: point.load(),
        y: value,
        hover: format!("{}, {}: {}", load(&point.arrivals), series_name(&view, point), unit.show(value)),
    };
    let stretch = |range: &Range<'_>| Stretch { x: range.least.0.load(), low: range.least.1, high: range.most.1 };
    let line =
        |name: &str, points: Vec<Place>, n| Layer::Line { name: name.into(), points, look: look(n), marked: true };
    let mut layers: Vec<Layer> = drawn.below.into_iter().collect();
    layers.push(Layer::Area {
        name: "all scenarios".into(),
        stretches: ranges.iter().map(stretch).collect(),
        look: look(0),
    });
    layers.push(line(drawn.ends.0, ranges.iter().map(|range| place(range.least)).collect(), 1));
    layers.push(line(drawn.ends.1, ranges.iter().map(|range| place(range.most)).collect(), 0));
    vec![Chart {
        id: drawn.id.into(),
        title: drawn.title.into(),
        caption: "Medians of all scenarios lie in the band; which one is at its ends is said where a point is pointed at, and in the \
                  table."
            .into(),
        x: view.axis(),
        y: Axis::new(drawn.metric.short(), unit).zero(),
        layers,
    }]
}
