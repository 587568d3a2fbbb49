//! Which of two targets is faster, by the length of the answer.

use crate::load::crossing::Faster;
use crate::report::inputs::Inputs;
use crate::report::load::digest::{Pair, Point};
use crate::report::load::metric::Metric;
use crate::report::load::view::{View, load_cell, median_cell};
use crate::report::model::{Block, Cell, Column, Missing, Quantity, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// A line each two targets of a level.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    if view.digest.pairs.is_empty() {
        return None;
    }
    let columns = vec![
        Column::words("scenario", "scenario"),
        view.load_column(),
        Column::words("short", "faster for short answers"),
        Column::numbers("tokens", "up to").about("output tokens, with the 95 % interval by resampling requests"),
        Column::words("long", "faster beyond"),
        Column::numbers("short_ttft", "TTFT P50 of the first"),
        Column::numbers("long_ttft", "of the second"),
        Column::numbers("short_tpot", "TPOT P50 of the first"),
        Column::numbers("long_tpot", "of the second"),
    ];
    let mut table = Table::new("pairs", "", columns);
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

/// Both points of a pair, the one that is faster for short answers first.
pub fn points<'a>(view: &View<'a>, pair: &Pair) -> Option<(&'a Point, &'a Point)> {
    let points = &view.digest.points;
    let (one, other) = (points.get(pair.points.0)?, points.get(pair.points.1)?);
    let first = match pair.faster {
        Faster::Always(first) | Faster::UpTo { first, .. } => first,
    };
    Some(if first { (one, other) } else { (other, one) })
}

/// Whether the intervals of both medians touch, of TTFT and of TPOT: then nobody is shown to be faster.
fn is_open(short: &Point, long: &Point) -> bool {
    [Metric::Ttft, Metric::Tpot].iter().all(|metric| {
        let ends = short.spread(*metric).p50_within.zip(long.spread(*metric).p50_within);
        ends.is_none_or(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
    })
}

fn row(view: &View<'_>, pair: &Pair, table: &mut Table) {
    let Some((short, long)) = points(view, pair) else { return };
    let name = |point: &Point| point.target.map_or_else(String::new, |target| view.target(target));
    let (first, tokens, second) = match pair.faster {
        _ if is_open(short, long) => {
            (Cell::text(words::NEITHER), Cell::Missing(Missing::NotAgreed), Cell::text(words::NEITHER))
        }
        Faster::Always(_) => {
            (Cell::foreign(&name(short)), Cell::Missing(Missing::NoCrossing), Cell::foreign(&name(short)))
        }
        Faster::UpTo { tokens, interval, .. } => {
            let quantity = Quantity::new(tokens, Unit::Tokens).filter(|_| interval.is_some());
            let tokens = quantity.map_or(Cell::Missing(Missing::NotAgreed), |quantity| {
                Cell::Number(quantity.within(interval), Tone::Plain)
            });
            (Cell::foreign(&name(short)), tokens, Cell::foreign(&name(long)))
        }
    };
    table.row(vec![
        Cell::foreign(&view.scenario(short.scenario)),
        load_cell(&short.arrivals),
        first,
        tokens,
        second,
        median_cell(short, Metric::Ttft),
        median_cell(long, Metric::Ttft),
        median_cell(short, Metric::Tpot),
        median_cell(long, Metric::Tpot),
    ]);
}
