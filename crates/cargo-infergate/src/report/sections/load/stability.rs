//! Whether a run was the same from its begin to its end: the medians of each quarter of a level's measured requests.

use super::found;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::quarters::{FOLLOWED, QUARTERS, Quarter};
use crate::report::load::view::View;
use crate::report::model::{Block, Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::report::words::load as words;
use infergate_core::stats::samples_needed;

/// Quarters whose medians differ by more than this part are worth a word.
const STEADY: f64 = 0.10;

/// A line a figure of each level and target.
pub fn section(inputs: &Inputs) -> Option<Section> {
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
    for point in view.digest.points.iter().filter(|point| point.quarters.len() == QUARTERS) {
        for (at, metric) in FOLLOWED.iter().enumerate() {
            let mut cells = view.cells(point);
            cells.push(Cell::text(format!("{} P50", metric.short())));
            cells.extend(point.quarters.iter().map(|quarter| median(quarter, at, Unit::of(*metric))));
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
    if table.rows.is_empty() {
        return None;
    }
    let section = Section::new("load_stability", "Stability over the run")
        .with(Block::Said(words::ABOUT_STABILITY.into()))
        .with(table.folding());
    Some(match finding(&view) {
        Some(finding) => section.with(Block::Findings(vec![finding])),
        None => section,
    })
}

fn median(quarter: &Quarter, at: usize, unit: Unit) -> Cell {
    Cell::number(quarter.p50[at], unit, few(quarter.requests[at]))
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

/// The point and figure that changed most.
fn finding(view: &View<'_>) -> Option<Finding> {
    let points = view.digest.points.iter().filter(|point| point.quarters.len() == QUARTERS);
    let changes = points.flat_map(|point| {
        FOLLOWED.iter().enumerate().filter_map(move |(at, metric)| Some((point, at, *metric, change(point, at)?)))
    });
    let (point, at, metric, change) = changes.max_by(|a, b| a.3.total_cmp(&b.3))?;
    let tone = if change > STEADY { Tone::Warn } else { Tone::Good };
    let place = view.place_name(point);
    let said = words::stability(&place, metric.short(), change, STEADY);
    let quarters = point.quarters.iter().enumerate().filter_map(|(number, quarter)| {
        Some((format!("P50 in quarter {}", number + 1), quarter.p50[at]?, Unit::of(metric)))
    });
    found(tone, said, &quarters.collect::<Vec<_>>())
}
