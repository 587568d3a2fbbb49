//! Whether a run was the same from its begin to its end: the medians of each quarter of a level's measured requests, and every
//! request over the time of the run.

use infergate_core::stats::samples_needed;

use super::{MOST_SERIES, left_out};
use crate::inputs::Inputs;
use crate::load::{FOLLOWED, Metric, Point, QUARTERS, Quarter, Series, View};
use crate::model::{Axis, Cell, Chart, Column, Finding, Layer, Look, Missing, Place, Section, Table, Tone, Unit};
use crate::units;

const ABOUT: &str = "The measured requests of each level in four parts of as many each, in the order of their starts.";
/// Quarters whose medians differ by more than this part are worth a word.
const STEADY: f64 = 0.10;
/// More points than this hide each other, and make a file slow.
const MOST_POINTS: usize = 900;

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let own = vec![
        Column::words("figure", "figure"),
        Column::numbers("first", "first quarter"),
        Column::numbers("second", "second"),
        Column::numbers("third", "third"),
        Column::numbers("fourth", "fourth"),
        Column::numbers("change", "most / least").about("of the four, less one"),
    ];
    let mut table = Table::new("quarters", "", [view.columns(), own].concat());
    for point in followed(&view) {
        for (at, metric) in FOLLOWED.iter().enumerate() {
            let mut cells = view.cells(point);
            cells.push(Cell::text(format!("{} P50", metric.short())));
            let median = |quarter: &Quarter| {
                let (failed, requests) = (quarter.failed, quarter.requests[at]);
                let is_few = requests < needed();
                let why =
                    if is_few { few(requests) } else { Missing::AmongFailed { failed, requests: requests + failed } };
                Cell::number(quarter.p50[at], Unit::of(*metric), why)
            };
            cells.extend(point.quarters.iter().map(median));
            let change = change(point, at);
            cells.push(Cell::number(change, Unit::Change, no_change(point, at)));
            table.notable_row(cells, change.is_some_and(|change| change > STEADY));
        }
        if point.quarters.iter().any(|quarter| quarter.failed > 0) {
            let mut cells = view.cells(point);
            cells.push(Cell::text("failed"));
            cells.extend(point.quarters.iter().map(failed));
            cells.push(Cell::text(""));
            table.notable_row(cells, true);
        }
    }
    let section = Section::new("load_stability", "Stability over the run").with([ABOUT]).with([table.folding()]);
    Some(section.with(finding(&view)).with(chart(&view)))
}

fn followed<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Point> + use<'a> {
    view.digest.points.iter().filter(|point| point.quarters.len() == QUARTERS)
}

fn few(samples: usize) -> Missing {
    Missing::TooFewSamples { needed: needed(), samples }
}

fn needed() -> usize {
    samples_needed(0.5).unwrap_or(usize::MAX)
}

/// The quarter with the fewest requests says why there is no change.
fn no_change(point: &Point, at: usize) -> Missing {
    let fewest = point.quarters.iter().map(|quarter| quarter.requests[at]).min().unwrap_or(0);
    if fewest < needed() { few(fewest) } else { Missing::Undefined }
}

fn failed(quarter: &Quarter) -> Cell {
    let share = (quarter.started > 0).then(|| quarter.failed as f64 / quarter.started as f64);
    let tone = if quarter.failed > 0 { Tone::Bad } else { Tone::Plain };
    Cell::number(share, Unit::Fraction, Missing::NotMeasured).toned(tone)
}

/// The largest of the four medians against the smallest; `None` where one of them is not known.
fn change(point: &Point, at: usize) -> Option<f64> {
    let known: Option<Vec<f64>> = point.quarters.iter().map(|quarter| quarter.p50[at]).collect();
    let known = known?;
    let (least, most) = (known.iter().copied().reduce(f64::min)?, known.iter().copied().reduce(f64::max)?);
    (least > 0.0).then(|| most / least - 1.0)
}

fn finding(view: &View<'_>) -> Option<Finding> {
    let changes = followed(view).flat_map(|point| {
        FOLLOWED.iter().enumerate().filter_map(move |(at, metric)| Some((point, *metric, change(point, at)?)))
    });
    let (point, metric, change) = changes.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let tone = if change > STEADY { Tone::Warn } else { Tone::Good };
    let said = format!(
        "Between quarters of a level {} of {} changes most, by {} (steady is up to {})",
        metric.short(),
        view.place_name(point),
        units::change(change),
        Unit::Fraction.show(STEADY)
    );
    Some(Finding::new(tone, said))
}

fn chart(view: &View<'_>) -> Option<Chart> {
    let began_ns = view.receipt.levels.iter().map(|level| level.began_ns).min().unwrap_or(0);
    let drawn: Vec<(Series, Vec<Place>)> =
        view.series().into_iter().take(MOST_SERIES).map(|series| (series, places(view, series, began_ns))).collect();
    // As many of each part of the run.
    let every = drawn.iter().map(|(_, places)| places.len()).sum::<usize>().div_ceil(MOST_POINTS).max(1);
    let layers =
        drawn.into_iter().enumerate().filter(|(_, (_, places))| !places.is_empty()).map(|(n, (series, places))| {
            let name = if view.series().len() > 1 { view.series_name(series) } else { "a request".to_owned() };
            Layer::Points { name, points: places.into_iter().step_by(every).collect(), look: Look::nth(n) }
        });
    let layers: Vec<Layer> = layers.collect();
    let said = "A point a request that completed, where it started. Steps are levels; a slope or a cloud within a level is not steady.";
    let some = if every > 1 { format!(" One in {every} requests is drawn.") } else { String::new() };
    (!layers.is_empty()).then(|| Chart {
        id: "load-stability".into(),
        title: "Every request over the run".into(),
        caption: format!("{said}{some}{}", left_out(view)),
        x: Axis::new("since the first level began", Unit::Ns).zero(),
        y: Axis::new("E2E", Unit::Ns).logarithmic(),
        layers,
    })
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
