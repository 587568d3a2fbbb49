//! Quartiles of each figure by the number of users, a table a figure.

use infergate_core::stats::samples_needed;

use super::worded;
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Rank;
use crate::report::load::view::{View, percentile_cell};
use crate::report::load::wait;
use crate::report::model::{Block, Cell, Column, Missing, Section, Table, Unit};
use crate::report::words::load as words;
use crate::report::words::pages::capital;

/// The figures, in the order they are read.
pub const SHOWN: [Metric; 4] = [Metric::E2e, Metric::Itl, Metric::Ttft, Metric::OutputThroughput];

/// A table a figure. A percentile that no level has requests enough for is a sentence and no column of dashes.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let section = Section::new("load_users", "By number of users").with(Block::List(words::definitions()));
    let tables = SHOWN.map(|metric| table(&view, metric));
    let any = tables.iter().any(|table| !table.rows.is_empty());
    let section = tables.into_iter().fold(section, Section::with);
    let few = no_p99(&view).into_iter().map(Block::Said);
    any.then(|| few.fold(section, Section::with))
}

/// Whether any level has requests enough for a P99 of `metric`.
pub fn has_p99(view: &View<'_>, metric: Metric) -> bool {
    view.digest.points.iter().any(|point| point.spread(metric).p99.is_some())
}

/// Why there is no such column.
fn no_p99(view: &View<'_>) -> Option<String> {
    if SHOWN.iter().any(|metric| has_p99(view, *metric)) {
        return None;
    }
    let most = view.digest.points.iter().map(|point| point.measured).max()?;
    Some(words::no_p99(most, samples_needed(Rank::P99.share())?))
}

fn table(view: &View<'_>, metric: Metric) -> Table {
    let mut own = vec![
        Column::numbers("requests", "requests").about("that the percentiles are from"),
        Column::numbers("p25", "P25"),
        Column::numbers("p50", "P50"),
        Column::numbers("p75", "P75"),
    ];
    let mut ranks = vec![Rank::P25, Rank::P50, Rank::P75];
    if has_p99(view, metric) {
        own.push(Column::numbers("p99", "P99"));
        ranks.push(Rank::P99);
    }
    if metric == Metric::Ttft {
        own.push(Column::words("feels", "feels").about("by the P50: at once up to 200 ms, nearly so up to 300 ms"));
    }
    let mut table = Table::new(metric.key(), capital(metric.long()), [view.columns(), own].concat());
    for point in &view.digest.points {
        let requests = point.spread(metric).requests as f64;
        let mut cells = view.cells(point);
        cells.push(Cell::number(Some(requests), Unit::Count, Missing::NotMeasured));
        cells.extend(ranks.iter().map(|rank| percentile_cell(point, metric, *rank)));
        if metric == Metric::Ttft {
            cells.push(worded(&percentile_cell(point, metric, Rank::P50), wait));
        }
        table.row(cells);
    }
    table
}
