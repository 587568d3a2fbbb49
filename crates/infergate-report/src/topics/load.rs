//! Topics of a load run: what ran, what each number of users got, and how several targets compare.

pub mod agreement;
pub mod audit;
pub mod cost;
pub mod failures;
pub mod levels;
pub mod limits;
pub mod range;
pub mod run;
pub mod scaling;
pub mod stability;
pub mod streaming;
pub mod targets;
pub mod users;
pub mod uses;
pub mod winners;

use crate::load::{Metric, Point, Series, View};
use crate::model::{Cell, Layer, Look, Stretch, Unit};

/// Series of one picture: there are no more colours.
const MOST_SERIES: usize = 7;
/// Scenarios that have pictures of their own: more would be scrolled past.
const MOST_SCENARIOS: usize = 6;

/// What a number means in a word; why there is none, where there is none.
fn worded(cell: &Cell, words: fn(f64) -> &'static str) -> Cell {
    match cell {
        Cell::Number(quantity, _) => Cell::text(words(quantity.value)),
        other => other.clone(),
    }
}

/// The points with the smallest and with the largest value, and the values. `None` where no point has one.
pub fn ends<'a>(points: &[&'a Point], value: impl Fn(&Point) -> Option<f64>) -> Option<[(&'a Point, f64); 2]> {
    let known = || points.iter().filter_map(|point| Some((*point, value(point)?)));
    let least = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = known().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some([least, most])
}

pub fn charted<'a>(view: &View<'a>) -> Vec<&'a Point> {
    view.series().into_iter().flat_map(|series| view.line(series)).collect()
}

/// The loads of these lines, the lowest first.
fn loads(lines: &[Vec<&Point>]) -> Vec<f64> {
    let mut loads: Vec<f64> = lines.iter().flatten().map(|point| point.load()).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    loads
}

/// The points of the highest load that all series share, one of each; none where they share none, or where only one load ran.
pub fn at_most_users<'a>(view: &View<'a>) -> Vec<&'a Point> {
    let lines: Vec<Vec<&Point>> = view.series().into_iter().map(|series| view.line(series)).collect();
    let at = |line: &[&'a Point], load: f64| line.iter().rev().find(|point| point.load() == load).copied();
    let loads = loads(&lines);
    if loads.len() < 2 {
        return Vec::new();
    }
    let shared = loads.iter().rev().find(|load| lines.iter().all(|line| at(line, **load).is_some()));
    shared.map_or_else(Vec::new, |load| lines.iter().filter_map(|line| at(line, *load)).collect())
}

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
