//! Topics of a load run: what ran, what each number of users got, and how several targets compare.

pub mod advice;
mod audit;
mod cost;
pub mod failures;
mod levels;
mod limits;
mod run;
mod stability;
mod targets;
mod users;
pub mod winners;

use crate::inputs::Inputs;
use crate::load::{Point, View};
use crate::model::{Layer, Look, Marks, Place, Section, Unit};

/// A part of a report of a load run.
type Topic = fn(&View) -> Option<Section>;

const TOPICS: &[Topic] = &[
    run::scenarios,
    levels::topic,
    limits::topic,
    users::topic,
    targets::topic,
    targets::providers,
    winners::topic,
    cost::topic,
    stability::topic,
    failures::topic,
    audit::topic,
    run::topic,
    advice::topic,
];

pub fn sections(inputs: &Inputs) -> Vec<Section> {
    inputs.load.iter().flat_map(|view| TOPICS.iter().filter_map(|topic| topic(view))).collect()
}

/// Whether a reader sees one number at both ends.
fn is_one(unit: Unit, from: f64, to: f64) -> bool {
    unit.show(from) == unit.show(to)
}

/// The points of this load that stand in charts, one of each series; empty where a series has none.
fn at_load(view: &View, load: f64) -> Vec<&Point> {
    let last = |series| view.line(series).into_iter().rev().find(|point| point.load() == load);
    view.series().into_iter().map(last).collect::<Option<Vec<&Point>>>().unwrap_or_default()
}

/// The points of the highest load that all series share, one of each; none where they share none, or where only one load ran.
pub fn at_most_users(view: &View) -> Vec<&Point> {
    let loads = view.loads();
    let mut shared = loads.iter().rev().map(|load| at_load(view, *load)).filter(|points| !points.is_empty());
    shared.next().filter(|_| loads.len() > 1).unwrap_or_default()
}

/// A line a series of what `value` says of each of its points; none where no series has two points.
fn lines(view: &View, unit: Unit, value: impl Fn(&Point) -> Option<f64>) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut longest = 0;
    for (n, series) in view.series().into_iter().enumerate() {
        let known = view.line(series).into_iter().filter_map(|point| Some(view.place(point, value(point)?, unit)));
        let places: Vec<Place> = known.collect();
        longest = longest.max(places.len());
        if !places.is_empty() {
            let name = if view.series().len() > 1 { view.series_name(series) } else { "measured".into() };
            layers.push(Layer::new(name, Look::nth(n), Marks::MarkedLine(places)));
        }
    }
    if longest < 2 { Vec::new() } else { layers }
}

/// A line over all loads at one value.
fn threshold(view: &View, name: &str, value: f64) -> Layer {
    let places = view.loads().into_iter().map(|load| Place::new(load, value, "")).collect();
    Layer::new(name, Look::ink(), Marks::Line(places))
}
