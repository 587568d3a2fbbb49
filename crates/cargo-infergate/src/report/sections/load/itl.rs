//! How even a stream is: the gaps between tokens, and how they feel.

use super::users::has_p99;
use super::{charted, ends, found, worded};
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Rank;
use crate::report::load::view::{View, percentile_cell};
use crate::report::load::{SLUGGISH_NS, smoothness};
use crate::report::model::{Block, Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// A line a level, and what follows.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let with_p99 = has_p99(&view, Metric::Itl);
    let p99 = with_p99.then(|| Column::numbers("p99", "P99"));
    let own = vec![
        Column::words("feels", "feels").about("by the P50"),
        Column::numbers("instant", "instant").about("the part of gaps under 20 ms"),
        Column::numbers("acceptable", "acceptable").about("from 20 to 70 ms"),
        Column::numbers("sluggish", "sluggish").about("above 70 ms"),
    ];
    let middle = vec![
        Column::numbers("mean", "mean").about("of all gaps of requests that completed"),
        Column::numbers("p50", "P50"),
    ];
    let mut table = Table::new("levels", "", [view.columns(), middle, p99.into_iter().collect(), own].concat());
    for point in &view.digest.points {
        let p50 = percentile_cell(point, Metric::Itl, Rank::P50);
        let feels = worded(&p50, smoothness);
        let why = if point.window.is_none() { Missing::NoWindow } else { Missing::Undefined };
        let mut cells = view.cells(point);
        cells.extend([Cell::number(point.mean_itl_ns, Unit::Ns, why), p50]);
        cells.extend(with_p99.then(|| percentile_cell(point, Metric::Itl, Rank::P99)));
        cells.push(feels);
        cells.extend(
            [0, 1, 2].map(|class| Cell::number(point.smoothness.map(|shares| shares[class]), Unit::Fraction, why)),
        );
        table.row(cells);
    }
    if table.rows.is_empty() {
        return None;
    }
    let section =
        Section::new("load_itl", "Inter-token latency").with(Block::Said(words::ABOUT_ITL.into())).with(table);
    Some(match finding(&view) {
        Some(finding) => section.with(Block::Findings(vec![finding])),
        None => section,
    })
}

/// The smoothest and the roughest.
fn finding(view: &View<'_>) -> Option<Finding> {
    let [(smooth, least), (rough, most)] = ends(&charted(view), |point| point.spread(Metric::Itl).p50)?;
    let (smooth, rough) = (view.place_name(smooth), view.place_name(rough));
    let said = words::itl((&smooth, least), (&rough, most));
    let name = |place: &str| format!("P50 of ITL of {place}");
    let tone = if most > SLUGGISH_NS { Tone::Warn } else { Tone::Plain };
    found(tone, said, &[(name(&smooth), least, Unit::Ns), (name(&rough), most, Unit::Ns)])
}
