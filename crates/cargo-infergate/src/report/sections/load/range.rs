//! Between the best and the worst scenario at each load: how much the length of prompts and answers matters.

use super::{at_most_users, charted, ends, found};
use crate::receipt::Metric;
use crate::report::inputs::Inputs;
use crate::report::load::digest::Point;
use crate::report::load::view::{View, load_cell};
use crate::report::model::{Block, Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::report::words::load as words;

/// One load: the scenarios with the smallest and the largest median.
#[derive(Debug, Clone, Copy)]
pub struct Range<'a> {
    /// The smallest.
    pub least: (&'a Point, f64),
    /// The largest.
    pub most: (&'a Point, f64),
}

/// The range at each load that every scenario ran at, the lowest load first. None with one scenario alone, and none where
/// several targets would be a second reason for a difference.
pub fn ranges<'a>(view: &View<'a>, metric: Metric) -> Vec<Range<'a>> {
    let lines: Vec<Vec<&Point>> = view.series().into_iter().map(|series| view.line(series)).collect();
    if lines.len() < 2 || view.has_targets() {
        return Vec::new();
    }
    let mut loads: Vec<f64> = lines.iter().flatten().map(|point| point.load()).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let at = |load: f64| {
        let find = |line: &Vec<&'a Point>| line.iter().find(|point| point.load() == load).copied();
        let points: Option<Vec<&Point>> = lines.iter().map(find).collect();
        let [least, most] = ends(&points?, |point| point.spread(metric).p50)?;
        Some(Range { least, most })
    };
    loads.into_iter().filter_map(at).collect()
}

/// Decode speed between the scenarios.
pub fn decode_speed(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let table = table(&view, Metric::DecodeSpeed, ("slowest", "fastest"))?;
    let section = Section::new("load_decode_range", "Decode speed between scenarios")
        .with(Block::Said(words::ABOUT_DECODE_RANGE.into()))
        .with(table);
    Some(match decode_finding(&view) {
        Some(finding) => section.with(Block::Findings(vec![finding])),
        None => section,
    })
}

/// TTFT between the scenarios.
pub fn ttft(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let table = table(&view, Metric::Ttft, ("shortest", "longest"))?;
    let section = Section::new("load_ttft_range", "Time to first token between scenarios")
        .with(Block::Said(words::ABOUT_TTFT_RANGE.into()))
        .with(table);
    Some(match ttft_finding(&view) {
        Some(finding) => section.with(Block::Findings(vec![finding])),
        None => section,
    })
}

fn table(view: &View<'_>, metric: Metric, (least, most): (&str, &str)) -> Option<Table> {
    let columns = vec![
        view.load_column(),
        Column::numbers("least", format!("{least} P50")),
        Column::words("least_of", "of"),
        Column::numbers("most", format!("{most} P50")),
        Column::words("most_of", "of"),
        Column::numbers("ratio", "most / least"),
    ];
    let mut table = Table::new("ranges", "", columns);
    for Range { least, most } in ranges(view, metric) {
        let value = |value: f64| Cell::number(Some(value), Unit::of(metric), Missing::Undefined);
        let ratio = (least.1 > 0.0).then(|| most.1 / least.1);
        table.row(vec![
            load_cell(&least.0.arrivals),
            value(least.1),
            Cell::foreign(&series_name(view, least.0)),
            value(most.1),
            Cell::foreign(&series_name(view, most.0)),
            Cell::number(ratio, Unit::Times, Missing::Undefined),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The name of the series that a point is of.
pub fn series_name(view: &View<'_>, point: &Point) -> String {
    view.series_name(crate::report::load::view::Series { scenario: point.scenario, target: point.target })
}

/// The fastest of all, and the range at the most users.
fn decode_finding(view: &View<'_>) -> Option<Finding> {
    let speed = |point: &Point| point.spread(Metric::DecodeSpeed).p50;
    let [_, (peak, highest)] = ends(&charted(view), speed)?;
    let points = at_most_users(view);
    let [(slow, least), (fast, most)] = ends(&points, speed)?;
    let places = [peak, slow, fast].map(|point| view.place_name(point));
    let said = words::decode_range((&places[0], highest), &slow.arrivals, (least, most));
    let name = |place: &str| format!("P50 of decode speed of {place}");
    let figures = [(name(&places[0]), highest), (name(&places[1]), least), (name(&places[2]), most)];
    found(Tone::Plain, said, &figures.map(|(name, value)| (name, value, Unit::TokensPerS)))
}

/// The shortest and the longest of all.
fn ttft_finding(view: &View<'_>) -> Option<Finding> {
    let [(short, least), (long, most)] = ends(&charted(view), |point| point.spread(Metric::Ttft).p50)?;
    let (short, long) = (view.place_name(short), view.place_name(long));
    let said = words::ttft_range((&short, least), (&long, most));
    let name = |place: &str| format!("P50 of TTFT of {place}");
    found(Tone::Plain, said, &[(name(&short), least, Unit::Ns), (name(&long), most, Unit::Ns)])
}
