//! Quartiles of each figure by the number of users, a table a scenario and figure.

use crate::report::inputs::Inputs;
use crate::report::load::digest::Rank;
use crate::report::load::metric::Metric;
use crate::report::load::view::{View, percentile_cell};
use crate::report::model::{Block, Cell, Column, Missing, Section, Table, Unit};
use crate::report::words::load as words;

/// The figures, in the order they are read.
pub const SHOWN: [Metric; 4] = [Metric::E2e, Metric::Itl, Metric::Ttft, Metric::OutputThroughput];

/// The tables of every scenario.
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
    any.then_some(section)
}

fn table(view: &View<'_>, scenario: usize, metric: Metric) -> Table {
    let own = vec![
        Column::numbers("requests", "requests").about("that the percentiles are from"),
        Column::numbers("p25", "P25"),
        Column::numbers("p50", "P50"),
        Column::numbers("p75", "P75"),
        Column::numbers("p99", "P99"),
    ];
    let title = words::of_scenario(&view.scenario(scenario), metric.name());
    let id = format!("{}-{}", view.scenario_id(scenario), metric.id());
    let mut table = Table::new(id, title, [view.load_columns(), own].concat());
    for point in view.digest.points.iter().filter(|point| point.scenario == scenario) {
        let requests = point.spread(metric).requests as f64;
        let mut cells = view.load_cells(point);
        cells.push(Cell::number(Some(requests), Unit::Count, Missing::NotMeasured));
        cells.extend(Rank::ALL.map(|rank| percentile_cell(point, metric, rank)));
        table.row(cells);
    }
    table
}
