//! Requests that failed, by class: they are in no latency, and beside every one.

use infergate_core::load::FailureClass;

use crate::report::inputs::Inputs;
use crate::report::load::class_words;
use crate::report::load::digest::Point;
use crate::report::load::uptime::Uptime;
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
        Column::numbers("status_429", "429").about("requests that every attempt was refused: too many at once"),
        Column::numbers("down", "answered nobody").about("how long all requests under way were ones that failed"),
        Column::numbers("uptime", "uptime").about("the rest of the time, as a part of all of it"),
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
            count(point.failures.get(&FailureClass::Status429).copied().unwrap_or(0)),
            down(point),
            Cell::number(point.uptime.map(Uptime::share), Unit::Fraction, Missing::NotMeasured),
            Cell::text(if classes.is_empty() { "none".into() } else { classes.join(", ") }),
        ]);
        table.row(cells);
    }
    Some(Section::new("load_failures", "Errors").with(table))
}

fn down(point: &Point) -> Cell {
    match point.uptime {
        Some(Uptime { down_ns: 0, .. }) => Cell::text("never"),
        uptime => {
            Cell::number(uptime.map(|uptime| uptime.down_ns as f64), Unit::Ns, Missing::NotMeasured).toned(Tone::Bad)
        }
    }
}
