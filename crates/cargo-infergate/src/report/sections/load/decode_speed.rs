//! How many tokens a second each user receives as more users share the engine.

use super::{charted, ends, found, worded};
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Rank;
use crate::report::load::view::{View, percentile_cell};
use crate::report::model::{Block, Column, Finding, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// Tokens a second that people read: 200 to 300 words a minute.
pub const READING_TOKENS_PER_S: (f64, f64) = (4.0, 7.0);

/// A line a level, and what follows.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let own = vec![
        Column::numbers("p25", "P25"),
        Column::numbers("p50", "P50"),
        Column::numbers("p75", "P75"),
        Column::words("reading", "for a reader").about("people read 4 to 7 tokens a second"),
    ];
    let mut table = Table::new("levels", "", [view.columns(), own].concat());
    for point in &view.digest.points {
        let mut cells = view.cells(point);
        cells.extend([Rank::P25, Rank::P50, Rank::P75].map(|rank| percentile_cell(point, Metric::DecodeSpeed, rank)));
        cells.push(worded(&percentile_cell(point, Metric::DecodeSpeed, Rank::P50), words::reading));
        table.row(cells);
    }
    if table.rows.is_empty() {
        return None;
    }
    let section = Section::new("load_decode", "Decode speed of each user")
        .with(Block::Said(words::ABOUT_DECODE_SPEED.into()))
        .with(table);
    Some(match finding(&view) {
        Some(finding) => section.with(Block::Findings(vec![finding])),
        None => section,
    })
}

/// The fastest and the slowest.
fn finding(view: &View<'_>) -> Option<Finding> {
    let [(slow, least), (fast, most)] = ends(&charted(view), |point| point.spread(Metric::DecodeSpeed).p50)?;
    let (slow, fast) = (view.place_name(slow), view.place_name(fast));
    let said = words::decode_speed((&fast, most), (&slow, least));
    let tone = if least < READING_TOKENS_PER_S.0 { Tone::Warn } else { Tone::Plain };
    let name = |place: &str| format!("P50 of decode speed of {place}");
    found(tone, said, &[(name(&fast), most, Unit::TokensPerS), (name(&slow), least, Unit::TokensPerS)])
}
