//! Targets beside each other, each median with its interval.

use super::MOST_SCENARIOS;
use crate::load::judge::load;
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::view::View;
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::words::load as words;

/// Lanes of more targets and loads than this cannot be read.
const MOST: usize = 24;
/// What is compared.
const SHOWN: [Metric; 3] = [Metric::Ttft, Metric::DecodeSpeed, Metric::E2e];

/// A chart a scenario and figure, where there are no lines over several loads that say the same.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let has_lines = |view: &View<'_>| view.series().into_iter().any(|series| view.line(series).len() > 1);
    let Some(view) = View::of(inputs).filter(|view| view.has_targets() && !has_lines(view)) else { return Vec::new() };
    let scenarios: Vec<usize> = view.scenarios().map(|(scenario, _)| scenario).take(MOST_SCENARIOS).collect();
    let each =
        |scenario: usize| SHOWN.iter().filter_map(move |metric| chart(&view, scenario, *metric)).collect::<Vec<_>>();
    scenarios.into_iter().flat_map(each).collect()
}

fn chart(view: &View<'_>, scenario: usize, metric: Metric) -> Option<Chart> {
    let of_scenario = view.digest.points.iter().filter(|point| point.scenario == scenario);
    let known: Vec<(&Point, f64)> =
        of_scenario.filter_map(|point| Some((point, point.spread(metric).p50?))).take(MOST).collect();
    if known.len() < 2 {
        return None;
    }
    let name = |point: &Point| {
        let target = point.target.map_or_else(String::new, |target| view.target(target));
        format!("{target}, {}", load(&point.arrivals))
    };
    let mut layers = Vec::new();
    let mut points = Vec::new();
    // The first stands on top.
    for (at, (point, p50)) in known.iter().rev().enumerate() {
        let y = at as f64;
        let shown = Unit::of(metric).show(*p50);
        if let Some((from, to)) = point.spread(metric).p50_within {
            let ends = format!("{} to {}", Unit::of(metric).show(from), Unit::of(metric).show(to));
            let hover = format!("{}: {shown} ({ends})", name(point));
            let look = Look::nth(point.target.unwrap_or(0)).dashed(false);
            layers.push(Layer::Interval { name: "95 % interval".into(), from, to, y, hover, look });
        }
        points.push(Place { x: *p50, y, hover: format!("{}: {shown}", name(point)) });
    }
    layers.push(Layer::Points { name: "P50".into(), points, look: Look::ink() });
    let lanes = known.iter().rev().map(|(point, _)| name(point)).collect();
    let caption = format!("Medians with their 95 % intervals. {}", words::direction(metric));
    Some(Chart {
        id: format!("load-targets-{}-{}", view.scenario_id(scenario), metric.key().replace('_', "-")),
        title: view.titled(scenario, metric.long()),
        caption,
        x: Axis::new(metric.short(), Unit::of(metric)).zero(),
        y: Axis::named("target and load", lanes),
        layers,
    })
}
