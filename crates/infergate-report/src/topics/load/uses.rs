//! Which figure matters for which use, and which target is the best one by it.

use crate::inputs::Inputs;
use crate::load::{Metric, Point, View, median_cell};
use crate::model::{Cell, Column, Section, Table, Tone};

const ABOUT: &str = "Who waits for the first word feels TTFT, who reads nothing along feels tokens a second, who needs the whole answer feels \
                     E2E. A target is named the best only where its interval lies apart from all the others'.";

/// Uses and the figure that decides for each.
const USES: [(&str, &str, Metric); 3] = [
    ("search, autocomplete", "TTFT", Metric::Ttft),
    ("agents, whose output nobody reads along", "tokens a second (decode speed)", Metric::DecodeSpeed),
    ("voice, translation", "E2E", Metric::E2e),
];

/// The best of several targets by one figure.
struct Best<'a> {
    first: &'a Point,
    second: &'a Point,
    /// Whether the intervals of both medians lie apart, and those of all the others too.
    is_sure: bool,
}

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs).filter(View::has_targets)?;
    let own = vec![
        Column::words("use", "use"),
        Column::words("figure", "figure that matters"),
        Column::words("best", "best"),
        Column::numbers("first", "P50 of the first"),
        Column::words("next", "next"),
        Column::numbers("second", "P50 of the next"),
    ];
    let mut table = Table::new("uses", "", [view.level_columns(), own].concat());
    for points in view.digest.points.chunk_by(|one, other| one.level == other.level) {
        for (purpose, figure, metric) in USES {
            let Some(Best { first, second, is_sure }) = best(points, metric) else { continue };
            let name = |point: &Point| Cell::foreign(&view.target_name(point));
            let own = vec![
                Cell::text(purpose),
                Cell::text(figure),
                if is_sure { name(first) } else { Cell::text("none: intervals overlap").toned(Tone::Warn) },
                median_cell(first, metric),
                name(second),
                median_cell(second, metric),
            ];
            table.row([view.level_cells(first.scenario, &first.arrivals), own].concat());
        }
    }
    Some(Section::new("load_uses", "Which figure matters for which use").with([ABOUT]).with([table]))
}

/// The best and the next of the points that have a median; `None` with fewer than two.
fn best(points: &[Point], metric: Metric) -> Option<Best<'_>> {
    let mut known: Vec<(&Point, f64)> =
        points.iter().filter_map(|point| Some((point, point.spread(metric).p50?))).collect();
    known.sort_by(|a, b| if metric.is_rate() { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
    let [(first, _), (second, _), ..] = known[..] else { return None };
    let is_sure = known[1..].iter().all(|(other, _)| {
        let ends = first.spread(metric).p50_within.zip(other.spread(metric).p50_within);
        ends.is_some_and(|(one, other)| one.1 < other.0 || other.1 < one.0)
    });
    Some(Best { first, second, is_sure })
}
