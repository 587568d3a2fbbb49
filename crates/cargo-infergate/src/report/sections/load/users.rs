//! Quartiles of each figure by the number of users, a table a scenario and figure.

use infergate::stats::samples_needed;

use super::{found, worded};
use crate::report::inputs::Inputs;
use crate::report::load::digest::Rank;
use crate::report::load::metric::Metric;
use crate::report::load::view::{View, percentile_cell};
use crate::report::load::wait;
use crate::report::model::{Block, Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// The figures, in the order they are read.
pub const SHOWN: [Metric; 4] = [Metric::E2e, Metric::Itl, Metric::Ttft, Metric::OutputThroughput];

/// The tables of every scenario. A percentile that no level has requests enough for is a sentence and no column of dashes.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let mut section = Section::new("load_users", "By number of users").with(Block::List(words::definitions()));
    let mut any = false;
    for (scenario, _) in view.scenarios() {
        for metric in SHOWN {
            let found = table(&view, scenario, metric);
            any |= !found.rows.is_empty();
            section = section.with(found);
        }
    }
    if let Some(finding) = no_p99(&view) {
        section = section.with(Block::Findings(vec![finding]));
    }
    any.then_some(section)
}

/// Whether any level has requests enough for a P99 of `metric`.
pub fn has_p99(view: &View<'_>, metric: Metric) -> bool {
    view.digest.points.iter().any(|point| point.spread(metric).p99.is_some())
}

fn no_p99(view: &View<'_>) -> Option<Finding> {
    if SHOWN.iter().any(|metric| has_p99(view, *metric)) {
        return None;
    }
    let needed = samples_needed(Rank::P99.share())?;
    let most = view.digest.points.iter().map(|point| point.measured).max()?;
    let figures = [
        ("most requests of a level".to_owned(), most as f64, Unit::Count),
        ("requests that a P99 takes".to_owned(), needed as f64, Unit::Count),
    ];
    found(Tone::Plain, words::no_p99(most, needed), &figures)
}

fn table(view: &View<'_>, scenario: usize, metric: Metric) -> Table {
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
    let title = words::of_scenario(&view.scenario(scenario), metric.name());
    let id = format!("{}-{}", view.scenario_id(scenario), metric.id());
    let mut table = Table::new(id, title, [view.load_columns(), own].concat());
    for point in view.digest.points.iter().filter(|point| point.scenario == scenario) {
        let requests = point.spread(metric).requests as f64;
        let mut cells = view.load_cells(point);
        cells.push(Cell::number(Some(requests), Unit::Count, Missing::NotMeasured));
        cells.extend(ranks.iter().map(|rank| percentile_cell(point, metric, *rank)));
        if metric == Metric::Ttft {
            cells.push(worded(&percentile_cell(point, metric, Rank::P50), wait));
        }
        table.row(cells);
    }
    table
}
