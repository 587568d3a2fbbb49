//! The limits that were asked for: which levels meet them, and how many requests a second do.

use crate::load::slo::Limit;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Limited;
use crate::report::load::view::View;
use crate::report::model::{Block, Cell, Column, Missing, Quantity, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// A line a level; nothing without limits.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let limits = &view.receipt.limits;
    if view.digest.limited.is_empty() {
        return None;
    }
    let (of_levels, of_requests): (Vec<&Limit>, Vec<&Limit>) =
        limits.iter().partition(|limit| limit.percentile.is_some());
    let mut section = Section::new("load_limits", "Limits");
    if !of_levels.is_empty() {
        section = section.with(Block::Said(words::limits_of_levels(&of_levels))).with(met(&view));
    }
    if !of_requests.is_empty() {
        section = section.with(Block::Said(words::limits_of_requests(&of_requests))).with(goodput(&view));
    }
    Some(section)
}

fn lead(view: &View<'_>, level: &Limited) -> Vec<Cell> {
    view.level_cells(level.scenario, &level.arrivals)
}

fn columns(view: &View<'_>, own: Vec<Column>) -> Vec<Column> {
    [view.level_columns(), own].concat()
}

fn met(view: &View<'_>) -> Table {
    let mut table = Table::new("met", "", columns(view, vec![Column::words("met", "limits")]));
    for level in &view.digest.limited {
        let met = match level.meets {
            Some(true) => Cell::text("met").toned(Tone::Good),
            Some(false) => Cell::text("missed").toned(Tone::Bad),
            None => Cell::text("not shown: too few requests").toned(Tone::Warn),
        };
        table.row([lead(view, level), vec![met]].concat());
    }
    table
}

fn goodput(view: &View<'_>) -> Table {
    let own = vec![
        Column::numbers("good", "within limits"),
        Column::numbers("all", "of").about("measured requests, failed ones too"),
        Column::numbers("share", "share"),
        Column::numbers("goodput", "goodput")
            .about("with the 95 % interval of the share by batch means, times the rate"),
    ];
    let mut table = Table::new("goodput", "Goodput", columns(view, own));
    for level in &view.digest.limited {
        let found = level.goodput;
        let count = |count: Option<u64>| Cell::number(count.map(|count| count as f64), Unit::Count, Missing::NoWindow);
        let share = found.map(|found| found.good as f64 / found.all as f64);
        let rate =
            found.and_then(|found| Some(Quantity::new(found.requests_per_s, Unit::RequestsPerS)?.within(found.within)));
        let own = vec![
            count(found.map(|found| found.good)),
            count(found.map(|found| found.all)),
            Cell::number(share, Unit::Fraction, Missing::NoWindow),
            rate.map_or(Cell::Missing(Missing::NoWindow), |rate| Cell::Number(rate, Tone::Plain)),
        ];
        table.row([lead(view, level), own].concat());
    }
    table
}
