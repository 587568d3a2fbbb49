//! Sections of a load run: what ran, what each number of users got, and how several targets compare. A new one is a file here
//! and a line in `SECTIONS`.

pub mod agreement;
pub mod audit;
pub mod cost;
pub mod decode_speed;
pub mod failures;
pub mod itl;
pub mod levels;
pub mod limits;
pub mod range;
pub mod run;
pub mod scaling;
pub mod stability;
pub mod targets;
pub mod users;
pub mod uses;
pub mod winners;

use crate::load::judge::load;
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::view::View;
use crate::report::load::winners::{points, sentence};
use crate::report::model::{Cell, Finding, Quantity, Tone, Unit};
use crate::report::words::load as words;

/// The title of a page: which of two targets is faster, or what the most users get. `None` without a load run and without a number.
pub fn title(inputs: &Inputs) -> Option<String> {
    let view = View::of(inputs)?;
    let pair = || {
        let pair = view.digest.pairs.first()?;
        let (point, _) = points(&view, pair)?;
        Some(format!("{}: {}", load(&point.arrivals), sentence(&view, pair)?))
    };
    pair().or_else(|| of_users(&view))
}

fn of_users(view: &View<'_>) -> Option<String> {
    let shared = at_most_users(view);
    let points = if shared.is_empty() { charted(view) } else { shared };
    let times = ends(&points, |point| Some(point.scaling? * f64::from(point.users().filter(|users| *users > 1)?)));
    let [(point, least), (_, most)] = ends(&points, |point| point.spread(Metric::Ttft).p50)?;
    Some(words::result(&load(&point.arrivals), times.map(|[least, most]| (least.1, most.1)), (least, most)))
}

/// A sentence of a rule, with the figures it rests on; none where one of them is no number.
pub fn found(tone: Tone, said: String, figures: &[(String, f64, Unit)]) -> Option<Finding> {
    let known: Vec<(String, Quantity)> =
        figures.iter().filter_map(|(name, value, unit)| Some((name.clone(), Quantity::new(*value, *unit)?))).collect();
    (known.len() == figures.len() && !known.is_empty()).then_some(Finding { tone, said, rests_on: known })
}

/// What a number means in a word; why there is none, where there is none.
fn worded(cell: &Cell, words: fn(f64) -> &'static str) -> Cell {
    match cell {
        Cell::Number(quantity, _) => Cell::text(words(quantity.value)),
        other => other.clone(),
    }
}

/// The points with the smallest and with the largest value, and the values. `None` where no point has one.
fn ends<'a>(points: &[&'a Point], value: impl Fn(&Point) -> Option<f64>) -> Option<[(&'a Point, f64); 2]> {
    let known = || points.iter().filter_map(|point| Some((*point, value(point)?)));
    let least = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = known().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some([least, most])
}

/// Every point that stands in charts.
fn charted<'a>(view: &View<'a>) -> Vec<&'a Point> {
    view.series().into_iter().flat_map(|series| view.line(series)).collect()
}

/// The points of the highest load that all series share, one of each; none where they share none, or where only one load ran.
fn at_most_users<'a>(view: &View<'a>) -> Vec<&'a Point> {
    let lines: Vec<Vec<&Point>> = view.series().into_iter().map(|series| view.line(series)).collect();
    let at = |line: &[&'a Point], load: f64| line.iter().rev().find(|point| point.load() == load).copied();
    let mut loads: Vec<f64> = lines.iter().flatten().map(|point| point.load()).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    if loads.len() < 2 {
        return Vec::new();
    }
    let shared = loads.iter().rev().find(|load| lines.iter().all(|line| at(line, **load).is_some()));
    shared.map_or_else(Vec::new, |load| lines.iter().filter_map(|line| at(line, *load)).collect())
}
