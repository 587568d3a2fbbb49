//! Every request of a scenario over the time of the run: drift, pauses and levels.

use infergate::load::RequestRecord;

use super::{MOST_SCENARIOS, MOST_SERIES, look};
use crate::load::summary::e2e_ns;
use crate::report::inputs::Inputs;
use crate::report::load::view::View;
use crate::report::model::{Axis, Chart, Layer, Place, Unit};
use crate::report::words::load as words;

/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 1_500;

/// A chart a scenario.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(view) = View::of(inputs) else { return Vec::new() };
    let scenarios: Vec<usize> = view.scenarios().map(|(scenario, _)| scenario).take(MOST_SCENARIOS).collect();
    scenarios.into_iter().filter_map(|scenario| chart(&view, scenario)).collect()
}

fn chart(view: &View<'_>, scenario: usize) -> Option<Chart> {
    let levels = || {
        let index = u32::try_from(scenario).ok();
        view.receipt.levels.iter().filter(move |level| Some(level.scenario) == index)
    };
    let began_ns = levels().map(|level| level.began_ns).min()?;
    let completed = || levels().flat_map(|level| &level.requests).filter(|record| record.failure.is_none());
    // As many of each part of the run.
    let every = completed().count().div_ceil(MOST_POINTS).max(1);
    let layers = view.targets().into_iter().take(MOST_SERIES).enumerate().filter_map(|(n, target)| {
        let is_its = |record: &&RequestRecord| target.is_none_or(|target| usize::try_from(record.target) == Ok(target));
        let points: Vec<Place> =
            completed().filter(is_its).step_by(every).filter_map(|record| place(record, began_ns)).collect();
        let name = target.map_or_else(|| "a request".to_owned(), |target| view.target(target));
        (!points.is_empty()).then(|| Layer::Points { name, points, look: look(n) })
    });
    let layers: Vec<Layer> = layers.collect();
    (!layers.is_empty()).then(|| Chart {
        id: format!("load-stability-{}", view.scenario_id(scenario)),
        title: words::of_scenario(&view.scenario(scenario), "every request over the run"),
        caption: words::over_the_run(every),
        x: Axis::new("since the first level began", Unit::Ns).zero(),
        y: Axis::new("E2E", Unit::Ns).zero(),
        layers,
    })
}

fn place(record: &RequestRecord, began_ns: u64) -> Option<Place> {
    let (start, y) = (record.scheduled_ns.saturating_sub(began_ns) as f64, e2e_ns(record)?);
    let hover = format!("request {} after {}: E2E {}", record.request, Unit::Ns.show(start), Unit::Ns.show(y));
    Some(Place { x: start, y, hover })
}
