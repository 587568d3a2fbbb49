//! Every request over the time of the run: drift, pauses and levels.

use super::{MOST_SERIES, left_out};
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::view::{Series, View};
use crate::report::model::{Axis, Chart, Layer, Look, Place, Unit};
use crate::report::words::load as words;

/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 900;

/// One chart of all scenarios and targets.
pub fn charts(inputs: &Inputs) -> Vec<Chart> {
    let Some(view) = View::of(inputs) else { return Vec::new() };
    let began_ns = view.receipt.levels.iter().map(|level| level.began_ns).min().unwrap_or(0);
    let drawn: Vec<(Series, Vec<Place>)> =
        view.series().into_iter().take(MOST_SERIES).map(|series| (series, places(&view, series, began_ns))).collect();
    // As many of each part of the run.
    let every = drawn.iter().map(|(_, places)| places.len()).sum::<usize>().div_ceil(MOST_POINTS).max(1);
    let layers =
        drawn.into_iter().enumerate().filter(|(_, (_, places))| !places.is_empty()).map(|(n, (series, places))| {
            let name = if view.series().len() > 1 { view.series_name(series) } else { "a request".to_owned() };
            Layer::Points { name, points: places.into_iter().step_by(every).collect(), look: Look::nth(n) }
        });
    let layers: Vec<Layer> = layers.collect();
    if layers.is_empty() {
        return Vec::new();
    }
    vec![Chart {
        id: "load-stability".into(),
        title: "Every request over the run".into(),
        caption: format!("{}{}", words::over_the_run(every), left_out(&view)),
        x: Axis::new("since the first level began", Unit::Ns).zero(),
        y: Axis::new("E2E", Unit::Ns).logarithmic(),
        layers,
    }]
}

/// When each completed request of a series started, and how long it took; so many that nothing is said of each.
fn places(view: &View<'_>, series: Series, began_ns: u64) -> Vec<Place> {
    let index = u32::try_from(series.scenario).ok();
    let levels = view.receipt.levels.iter().filter(|level| Some(level.scenario) == index);
    let is_its = |target: u32| series.target.is_none_or(|own| usize::try_from(target) == Ok(own));
    let completed = levels.flat_map(|level| &level.requests).filter(|record| record.failure.is_none());
    let places = completed.filter(|record| is_its(record.target)).filter_map(|record| {
        let y = Metric::E2e.value(record).filter(|ns| *ns > 0.0)?;
        Some(Place { x: record.scheduled_ns.saturating_sub(began_ns) as f64, y, hover: String::new() })
    });
    places.collect()
}
