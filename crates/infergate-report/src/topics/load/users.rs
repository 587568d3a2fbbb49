//! Quartiles of each figure by the number of users, a table and a picture a figure; and all figures of the only scenario together.

use infergate_core::stats::samples_needed;

use super::streaming::itl_chart;
use super::{left_out, lines, quartiles, worded};
use crate::inputs::Inputs;
use crate::load::{Metric, Rank, View, direction, has_p99, percentile_cell, wait};
use crate::model::{Axis, Cell, Chart, Column, Layer, Look, Place, Section, Table, Unit};
use crate::units::capital;

/// The figures, in the order they are read.
const SHOWN: [Metric; 4] = [Metric::E2e, Metric::Itl, Metric::Ttft, Metric::OutputThroughput];
const DEFINITIONS: [&str; 4] = [
    "TTFT, time to first token: from the request's start to its first token.",
    "ITL, inter-token latency: each gap between two pieces of the answer.",
    "E2E, end-to-end latency: from the request's start to its last token.",
    "Output throughput of a request: its output tokens / E2E.",
];
/// Series whose bands can be told apart in one picture.
const MOST_BANDS: usize = 2;

/// A table a figure. A percentile that no level has requests enough for is a sentence and no column of dashes.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let view = View::of(inputs).filter(|view| !view.digest.points.is_empty())?;
    let definitions: Vec<String> = DEFINITIONS.map(str::to_owned).into();
    let section = Section::new("load_users", "By number of users").with([definitions]);
    let mut tables = SHOWN.map(|metric| table(&view, metric));
    tables[SHOWN.len() - 1].note = no_p99(&view);
    let section = section.with(tables);
    let charts = SHOWN.iter().filter_map(|metric| match metric {
        Metric::Itl => itl_chart(&view),
        metric => chart(&view, *metric),
    });
    Some(section.with(charts.chain(together(&view))))
}

/// Why there is no such column.
fn no_p99(view: &View<'_>) -> Option<String> {
    if SHOWN.iter().any(|metric| has_p99(view, *metric)) {
        return None;
    }
    let most = view.digest.points.iter().map(|point| point.measured).max()?;
    let needed = samples_needed(Rank::P99.share())?;
    if most >= needed {
        return Some("No P99 is printed: it lies among the requests that failed.".into());
    }
    Some(format!(
        "No P99 is printed: it takes {needed} requests and no level has more than {most}; measure longer for one."
    ))
}

fn table(view: &View<'_>, metric: Metric) -> Table {
    let mut own = vec![
        Column::numbers("requests", "requests").about("that the percentiles are from").detail(),
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
    view.table(metric.key(), &capital(metric.long()), own, |point| {
        let mut cells = vec![Cell::count(point.spread(metric).requests)];
        cells.extend(ranks.iter().map(|rank| percentile_cell(point, metric, *rank)));
        if metric == Metric::Ttft {
            cells.push(worded(&percentile_cell(point, metric, Rank::P50), wait));
        }
        cells
    })
    .on_terminal()
}

fn chart(view: &View<'_>, metric: Metric) -> Option<Chart> {
    let lines = lines(view, Unit::of(metric), |point| point.spread(metric).p50);
    if lines.is_empty() {
        return None;
    }
    let series = view.series();
    let (mut layers, mut band) = (Vec::new(), "");
    if series.len() <= MOST_BANDS {
        band = ", the band reaches from P25 to P75";
        for (n, series) in series.into_iter().enumerate() {
            let name = format!("{}P25 to P75", view.own_name(series));
            layers.extend(quartiles(view, series, metric, name, Look::nth(n)));
        }
    }
    layers.extend(lines);
    Some(Chart {
        id: format!("load-{}", metric.key().replace('_', "-")),
        title: capital(metric.long()),
        caption: format!("The line joins medians{band}. {}{}", direction(metric), left_out(view)),
        x: view.axis(),
        y: Axis::new(metric.short(), Unit::of(metric)).zero(),
        layers,
    })
}

/// All figures of the only series, each against its value at the lowest load.
fn together(view: &View<'_>) -> Option<Chart> {
    let [series] = view.series()[..] else { return None };
    let line = view.line(series);
    let first = *line.first()?;
    let at_first = first.arrivals.name();
    let layers = SHOWN.iter().enumerate().filter_map(|(n, metric)| {
        let base = first.spread(*metric).p50.filter(|base| *base > 0.0)?;
        let points = line.iter().filter_map(|point| {
            let value = point.spread(*metric).p50.filter(|value| *value > 0.0)?;
            let hover = format!(
                "{} at {}: {}, {} that at {at_first}",
                metric.short(),
                point.arrivals.name(),
                Unit::of(*metric).show(value),
                Unit::Times.show(value / base)
            );
            Some(Place { x: point.load(), y: value / base, hover })
        });
        let points: Vec<Place> = points.collect();
        let name = metric.short().into();
        (points.len() > 1).then(|| Layer::Line { name, points, look: Look::nth(n), marked: true })
    });
    let layers: Vec<Layer> = layers.collect();
    (!layers.is_empty()).then(|| Chart {
        id: "load-all".into(),
        title: "All figures together".into(),
        caption: format!(
            "Each figure's median against its own at {at_first}: a time that doubles stands at 2, a throughput that halves at 0.5."
        ),
        x: view.axis(),
        y: Axis::new(format!("against {at_first}"), Unit::Times).logarithmic(),
        layers,
    })
}
