//! Between the best and the worst scenario at each load: how much the length of prompts and answers matters.

use super::{at_most_users, charted, ends, loads};
use crate::inputs::Inputs;
use crate::load::{Metric, Point, View, load_cell};
use crate::model::{Cell, Column, Finding, Missing, Section, Table, Tone, Unit};

const ABOUT_SPEED: &str = "Between the fastest and the slowest scenario at each load. A narrow band says that the length of prompts and \
                           answers hardly matters.";
const ABOUT_TTFT: &str = "Between the scenario that waits shortest for its first token and the one that waits longest. Longer prompts take \
                          longer to read.";

pub fn decode_speed(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let table = table(&view, Metric::DecodeSpeed, ("slowest", "fastest"));
    let section = Section::new("load_decode_range", "Decode speed between scenarios").with([ABOUT_SPEED]);
    (!table.rows.is_empty()).then(|| section.with([table]).with(decode_finding(&view)))
}

pub fn ttft(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs)?;
    let table = table(&view, Metric::Ttft, ("shortest", "longest"));
    let section = Section::new("load_ttft_range", "Time to first token between scenarios").with([ABOUT_TTFT]);
    (!table.rows.is_empty()).then(|| section.with([table]).with(ttft_finding(&view)))
}

/// The scenarios with the smallest and the largest median, and both.
type Range<'a> = [(&'a Point, f64); 2];

/// The range at each load that every scenario ran at, the lowest load first. None with one scenario alone, and none where
/// several targets would be a second reason for a difference.
fn ranges<'a>(view: &View<'a>, metric: Metric) -> Vec<Range<'a>> {
    let lines: Vec<Vec<&Point>> = view.series().into_iter().map(|series| view.line(series)).collect();
    if lines.len() < 2 || view.has_targets() {
        return Vec::new();
    }
    let at = |load: f64| {
        let find = |line: &Vec<&'a Point>| line.iter().find(|point| point.load() == load).copied();
        let points: Option<Vec<&Point>> = lines.iter().map(find).collect();
        ends(&points?, |point| point.spread(metric).p50)
    };
    loads(&lines).into_iter().filter_map(at).collect()
}

fn table(view: &View<'_>, metric: Metric, (least, most): (&str, &str)) -> Table {
    let columns = vec![
        view.load_column(),
        Column::numbers("least", format!("{least} P50")),
        Column::words("least_of", "of"),
        Column::numbers("most", format!("{most} P50")),
        Column::words("most_of", "of"),
        Column::numbers("ratio", "most / least"),
    ];
    let mut table = Table::new("ranges", "", columns);
    for [(least, low), (most, high)] in ranges(view, metric) {
        table.row(vec![
            load_cell(&least.arrivals),
            Cell::number(Some(low), Unit::of(metric), Missing::Undefined),
            Cell::foreign(&view.series_name(least.series())),
            Cell::number(Some(high), Unit::of(metric), Missing::Undefined),
            Cell::foreign(&view.series_name(most.series())),
            Cell::number((low > 0.0).then(|| high / low), Unit::Times, Missing::Undefined),
        ]);
    }
    table
}

/// The fastest of all, and the range at the most users.
fn decode_finding(view: &View<'_>) -> Option<Finding> {
    let speed = |point: &Point| point.spread(Metric::DecodeSpeed).p50;
    let [_, (peak, highest)] = ends(&charted(view), speed)?;
    let points = at_most_users(view);
    let [(slow, least), (fast, most)] = ends(&points, speed)?;
    let places = [peak, slow, fast].map(|point| view.place_name(point));
    let show = |value| Unit::TokensPerS.show(value);
    let said = format!(
        "The middle decode speed of a user is at most {} ({}). At {} it is from {} to {}, by scenario",
        show(highest),
        places[0],
        slow.arrivals.name(),
        show(least),
        show(most)
    );
    Some(Finding::new(Tone::Plain, said))
}

/// The shortest and the longest of all.
fn ttft_finding(view: &View<'_>) -> Option<Finding> {
    let [(short, least), (long, most)] = ends(&charted(view), |point| point.spread(Metric::Ttft).p50)?;
    let (short, long) = (view.place_name(short), view.place_name(long));
    let said =
        format!("The middle TTFT is from {} ({short}) to {} ({long})", Unit::Ns.show(least), Unit::Ns.show(most));
    Some(Finding::new(Tone::Plain, said))
}
