//! Each figure of a scenario over the number of users, and all of them in one.

use super::{MOST_SCENARIOS, MOST_SERIES, look, quartiles};
use crate::load::judge::load;
use crate::report::inputs::Inputs;
use crate::report::load::metric::Metric;
use crate::report::load::view::{Series, View};
use crate::report::model::{Axis, Chart, Layer, Place, Unit};
use crate::report::sections::load::users::SHOWN;
use crate::report::words::load as words;

/// Targets whose bands can be told apart in one picture.
const MOST_BANDS: usize = 3;

/// A chart a scenario and figure, and one of all figures.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(view) = View::of(inputs) else { return Vec::new() };
    let scenarios: Vec<usize> = view.scenarios().map(|(scenario, _)| scenario).take(MOST_SCENARIOS).collect();
    let of_scenario = |scenario: usize| {
        let each = SHOWN.iter().filter_map(move |metric| of_metric(&view, scenario, *metric));
        each.chain(together(&view, scenario)).collect::<Vec<_>>()
    };
    scenarios.into_iter().flat_map(of_scenario).collect()
}

fn of_metric(view: &View<'_>, scenario: usize, metric: Metric) -> Option<Chart> {
    let targets: Vec<Option<usize>> = view.targets().into_iter().take(MOST_SERIES).collect();
    let mut layers = Vec::new();
    let mut lines = Vec::new();
    for (n, target) in targets.iter().enumerate() {
        let series = Series { scenario, target: *target };
        let own = target.map_or_else(String::new, |target| format!("{}, ", view.target(target)));
        let known = view.line(series).into_iter().filter_map(|point| {
            let spread = point.spread(metric);
            let place = view.place(point, spread.p50?, metric.unit());
            let quartiles = spread.p25.zip(spread.p75).map_or_else(String::new, |(low, high)| {
                format!(" (P25 {}, P75 {})", metric.unit().show(low), metric.unit().show(high))
            });
            Some(Place { hover: format!("{}{quartiles}", place.hover), ..place })
        });
        let points: Vec<Place> = known.collect();
        if points.len() > 1 {
            if targets.len() <= MOST_BANDS {
                layers.extend(quartiles(view, series, metric, format!("{own}P25 to P75"), look(n)));
            }
            lines.push(Layer::Line { name: format!("{own}P50"), points, look: look(n), marked: true });
        }
    }
    if lines.is_empty() {
        return None;
    }
    layers.extend(lines);
    Some(Chart {
        id: format!("load-{}-{}", view.scenario_id(scenario), metric.id().replace('_', "-")),
        title: words::of_scenario(&view.scenario(scenario), metric.name()),
        caption: format!("The line joins medians, the band reaches from P25 to P75. {}", words::direction(metric)),
        x: view.axis(),
        y: Axis::new(metric.short(), metric.unit()).zero(),
        layers,
    })
}

/// All figures of the only target, each against its value at the lowest load.
fn together(view: &View<'_>, scenario: usize) -> Option<Chart> {
    if view.has_targets() {
        return None;
    }
    let line = view.line(Series { scenario, target: None });
    let first = *line.first()?;
    let layers = SHOWN.iter().enumerate().filter_map(|(n, metric)| {
        let base = first.spread(*metric).p50.filter(|base| *base > 0.0)?;
        let points = line.iter().filter_map(|point| {
            let value = point.spread(*metric).p50.filter(|value| *value > 0.0)?;
            let hover = format!(
                "{} at {}: {}, {} that at {}",
                metric.short(),
                load(&point.arrivals),
                metric.unit().show(value),
                Unit::Times.show(value / base),
                load(&first.arrivals)
            );
            Some(Place { x: point.load(), y: value / base, hover })
        });
        let points: Vec<Place> = points.collect();
        (points.len() > 1).then(|| Layer::Line { name: metric.short().into(), points, look: look(n), marked: true })
    });
    let layers: Vec<Layer> = layers.collect();
    (!layers.is_empty()).then(|| Chart {
        id: format!("load-{}-all", view.scenario_id(scenario)),
        title: words::of_scenario(&view.scenario(scenario), "all figures together"),
        caption: words::together(&load(&first.arrivals)),
        x: view.axis(),
        y: Axis::new(format!("against {}", load(&first.arrivals)), Unit::Times).logarithmic(),
        layers,
    })
}
