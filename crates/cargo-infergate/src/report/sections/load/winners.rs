//! Which of two targets is faster, by the length of the answer.

use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Pair;
use crate::report::load::view::{View, median_cell};
use crate::report::load::winners::{Winners, points};
use crate::report::model::{Block, Cell, Column, Missing, Quantity, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// A line each two targets of a level.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    if view.digest.pairs.is_empty() {
        return None;
    }
    let own = vec![
        Column::words("short", "faster for short answers"),
        Column::numbers("tokens", "up to")
            .about("output tokens, with the 95 % interval by resampling stretches of the run"),
        Column::words("long", "faster beyond"),
        Column::numbers("short_ttft", "TTFT P50 of the first"),
        Column::numbers("long_ttft", "of the second"),
        Column::numbers("short_tpot", "TPOT P50 of the first"),
        Column::numbers("long_tpot", "of the second"),
    ];
    let mut table = Table::new("pairs", "", [view.level_columns(), own].concat());
    for pair in &view.digest.pairs {
        row(&view, pair, &mut table);
    }
    let section = Section::new("load_winners", "Who is faster at which length")
        .with(Block::Said(words::ABOUT_WINNERS.into()))
        .with(table);
    Some(match view.digest.pairs_left_out {
        0 => section,
        more => section.with(Block::Said(words::more_pairs(more))),
    })
}

fn row(view: &View<'_>, pair: &Pair, table: &mut Table) {
    let Some((one, other)) = points(view, pair) else { return };
    let Winners { short: wins_short, long: wins_long, crossing } = pair.winners;
    // Its medians stand first.
    let (short, long) = if wins_short.or(wins_long).unwrap_or(true) { (one, other) } else { (other, one) };
    let name = |first: Option<bool>| match first.map(|first| if first { one } else { other }.target) {
        Some(target) => Cell::foreign(&target.map_or_else(String::new, |target| view.target(target))),
        None => Cell::text(words::NEITHER),
    };
    let tokens = match crossing {
        Some((tokens, interval)) => Quantity::new(tokens, Unit::Tokens)
            .map_or(Cell::Missing(Missing::NotAgreed), |tokens| {
                Cell::Number(tokens.within(Some(interval)), Tone::Plain)
            }),
        None if wins_short.is_some() && wins_short == wins_long => Cell::Missing(Missing::NoCrossing),
        None => Cell::Missing(Missing::NotAgreed),
    };
    let (first, second) = (name(wins_short), name(wins_long));
    let own = vec![
        first,
        tokens,
        second,
        median_cell(short, Metric::Ttft),
        median_cell(long, Metric::Ttft),
        median_cell(short, Metric::Tpot),
        median_cell(long, Metric::Tpot),
    ];
    table.row([view.level_cells(short.scenario, &short.arrivals), own].concat());
}
