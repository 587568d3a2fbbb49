//! Pictures of a load run: a figure over the number of users, ranges, and targets beside each other.

pub mod decode_speed;
mod itl;
pub mod scaling;
pub mod stability;
pub mod targets;
pub mod users;
pub mod winners;

use crate::receipt::Metric;
use crate::report::load::digest::Point;
use crate::report::load::view::{Series, View};
use crate::report::model::{Layer, Look, Stretch, Unit};

/// Series of one picture: there are no more colours.
const MOST_SERIES: usize = 7;
/// Scenarios that have pictures of their own: more would be scrolled past.
const MOST_SCENARIOS: usize = 6;

/// A line a series of what `value` says of each of its points; none where no series has two points.
fn lines(view: &View<'_>, unit: Unit, value: impl Fn(&Point) -> Option<f64>) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut longest = 0;
    for (n, series) in view.series().into_iter().take(MOST_SERIES).enumerate() {
        let known = view.line(series).into_iter().filter_map(|point| Some(view.place(point, value(point)?, unit)));
        let points: Vec<_> = known.collect();
        longest = longest.max(points.len());
        if !points.is_empty() {
            let name = if view.series().len() > 1 { view.series_name(series) } else { "measured".into() };
            layers.push(Layer::Line { name, points, look: Look::nth(n), marked: true });
        }
    }
    if longest < 2 { Vec::new() } else { layers }
}

/// The band from P25 to P75 of a series.
fn quartiles(view: &View<'_>, series: Series, metric: Metric, name: String, look: Look) -> Option<Layer> {
    let known = view.line(series).into_iter().filter_map(|point| {
        let spread = point.spread(metric);
        Some(Stretch { x: point.load(), low: spread.p25?, high: spread.p75? })
    });
    let stretches: Vec<Stretch> = known.collect();
    (stretches.len() > 1).then_some(Layer::Area { name, stretches, look })
}

/// What a caption adds where not every series is drawn.
fn left_out(view: &View<'_>) -> String {
    match view.series().len().saturating_sub(MOST_SERIES) {
        0 => String::new(),
        more => format!(" {more} more are in the table alone."),
    }
}
