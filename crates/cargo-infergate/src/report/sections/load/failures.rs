//! Requests that failed, by class: they are in no latency, and beside every one.

use crate::report::inputs::Inputs;
use crate::report::load::class_words;
use crate::report::load::view::View;
use crate::report::model::{Cell, Column, Missing, Quantity, Section, Table, Tone, Unit};

/// A line a level and target with a failure or a request that was made again; nothing where all went well and one target was
/// asked.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let is_well = view.digest.points.iter().all(|point| point.failed() == 0 && point.retries == 0);
    if view.digest.points.is_empty() || (is_well && !view.has_targets()) {
        return None;
    }
    let own = vec![
        Column::numbers("ended", "requests").about("that were not given up when the run ended"),
        Column::numbers("failed", "failed"),
        Column::numbers("rate", "error rate").about("with its 95 % interval by batch means"),
        Column::numbers("retries", "made again").about("attempts that ended in 429 or 5xx"),
        Column::words("classes", "how"),
    ];
    let mut table = Table::new("failures", "", [view.columns(), own].concat());
    for point in &view.digest.points {
        let ended = point.issued.saturating_sub(point.cancelled);
        let failed = point.failed();
        let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
        let rate =
            Quantity::new(failed as f64 / ended as f64, Unit::Fraction).map(|rate| rate.within(point.failed_within));
        let classes: Vec<String> =
            point.failures.iter().map(|(class, count)| format!("{count} {}", class_words(*class))).collect();
        let count = |count: u64| Cell::number(Some(count as f64), Unit::Count, Missing::NotMeasured);
        let mut cells = view.cells(point);
        cells.extend([
            count(ended),
            count(failed).toned(tone),
            rate.map_or(Cell::Missing(Missing::NotMeasured), |rate| Cell::Number(rate, tone)),
            count(point.retries),
            Cell::text(if classes.is_empty() { "none".into() } else { classes.join(", ") }),
        ]);
        table.row(cells);
    }
    Some(Section::new("load_failures", "Errors").with(table))
}
