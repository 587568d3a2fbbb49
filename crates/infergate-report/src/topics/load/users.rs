//! Each figure of a request by the number of users: a table and a picture a figure, all figures of the only scenario together, and
//! how far scenarios lie apart.

use infergate_core::stats::mean;

use super::{at_load, is_one, lines, threshold};
use crate::load::{Feels, Metric, Point, View, feels, percentile_cell};
use crate::model::{
    Axis, Cell, Chart, Finding, Layer, Look, Marks, Missing, Place, Rows, Section, Stretch, Table, Tone, Unit,
};
use crate::topics::{ends, request::timeline};
use crate::units::capital;

/// The figures, in the order they are read.
const FIGURES: [(Metric, &str); 5] = [
    (Metric::E2e, "E2E, end-to-end latency: from the request's start to its last token."),
    (
        Metric::Itl,
        "ITL, inter-token latency: each gap between two pieces of the answer, 0 in bursts. P50 is over all gaps of all requests.",
    ),
    (
        Metric::Ttft,
        "TTFT, time to first token: from the request's start to its first token. The prompt is read in it, so a longer one takes longer.",
    ),
    (
        Metric::DecodeSpeed,
        "Decode speed of a user: tokens a second after the first (1 / TPOT, so stalls count). Users share the \
         machine, so it falls with them. People read 200 to 300 words a minute.",
    ),
    (Metric::OutputThroughput, "Output throughput of a request: its output tokens / E2E."),
];
const FAILED: &str = "Failed requests count as slowest in percentiles of times; means and speeds skip them.";
/// A threshold is drawn where a median is above this part of it: it would make the lines flat.
const NEAR: f64 = 0.2;
/// The figures whose range over the scenarios is drawn.
const RANGES: [Metric; 2] = [Metric::DecodeSpeed, Metric::Ttft];

pub fn topic(view: &View) -> Option<Section> {
    let figures = if view.has_tokens() { &FIGURES[..] } else { &FIGURES[..1] };
    let define = |(metric, about): &(Metric, &str)| match feels(*metric) {
        Some(feels) => format!("{about} Its P50 feels {}.", feels.about(Unit::of(*metric))),
        None => (*about).to_owned(),
    };
    let mut definitions: Vec<String> = figures.iter().map(define).collect();
    definitions.extend(view.points.iter().any(|point| point.summary.failed() > 0).then(|| FAILED.to_owned()));
    let is_known = |(metric, _): &&(Metric, &str)| view.points.iter().any(|point| point.spread(*metric).is_known());
    let tables = figures.iter().filter(is_known).map(|(metric, _)| table(view, *metric));
    let findings: Vec<Finding> = figures.iter().filter_map(|(metric, _)| finding(view, *metric)).collect();
    let charts =
        figures.iter().map(|(metric, _)| chart(view, *metric)).chain(together(view).filter(|_| view.has_tokens()));
    let section = Section::new("load_users", "By number of users").with([definitions]).with(example(view)).with(tables);
    let bands = RANGES.into_iter().filter_map(|metric| band(view, metric));
    Some(section.with([findings]).with(charts).with(bands))
}

/// What the figures are, in the middle one of the requests at the lowest load.
fn example(view: &View) -> Option<Chart> {
    let point = view.charted().next()?;
    let mut whole: Vec<_> =
        view.requests(point).filter(|record| record.failure.is_none() && record.chunk_ns.len() > 1).collect();
    whole.sort_by_key(|record| record.ended_ns.saturating_sub(record.scheduled_ns));
    let record = whole.get(whole.len() / 2)?;
    let token_ns: Vec<u64> = record.chunk_ns.iter().map(|ns| ns.saturating_sub(record.scheduled_ns)).collect();
    timeline(&view.place_name(point), &token_ns)
}

fn table(view: &View, metric: Metric) -> Table {
    let percentile = |p| move |point: &&Point| percentile_cell(point, metric, p);
    let mut rows = view
        .rows(metric.key(), &capital(metric.long()))
        .titled_numbers("p25", "P25", percentile(0.25))
        .titled_numbers("p50", "P50", percentile(0.5))
        .titled_numbers("p75", "P75", percentile(0.75))
        .titled_numbers("p99", "P99", percentile(0.99));
    if let Some(feels) = feels(metric) {
        let word = |point: &&Point| match percentile_cell(point, metric, 0.5) {
            Cell::Number(p50, _) => Cell::text(feels.word(p50.value)),
            missing => missing,
        };
        rows = rows.words("feels", word);
        if metric == Metric::Itl {
            rows = gaps(rows, feels);
        }
    }
    rows.table().on_terminal()
}

/// What is said of all gaps together: their mean, and the part in each class.
fn gaps<'a>(rows: Rows<&'a Point>, feels: &Feels) -> Rows<&'a Point> {
    // Where half failed, the rest says little of them.
    let of = |point: &Point, value: Option<f64>, unit| match percentile_cell(point, Metric::Itl, 0.5) {
        Cell::Number(..) => Cell::number(value, unit, Missing::Undefined),
        missing => missing,
    };
    let mean = |point: &&Point| of(point, mean(&point.summary.values(Metric::Itl).values), Unit::Ns);
    let rows = rows.numbers("mean", mean).about("of all gaps of requests that completed").detail();
    feels.words().fold(rows, |rows, word| {
        let share = |point: &&Point| {
            let gaps_ns = &point.summary.values(Metric::Itl).values;
            let within = gaps_ns.iter().filter(|ns| feels.word(**ns) == word).count();
            of(point, Some(within as f64 / gaps_ns.len() as f64), Unit::Fraction)
        };
        rows.numbers(word, share).about("the part of all gaps").detail()
    })
}

/// From the best to the worst median of all, and what a reader makes of both.
fn finding(view: &View, metric: Metric) -> Option<Finding> {
    let feels = feels(metric)?;
    let [mut best, mut worst] = ends(view.charted(), |point| point.p50(metric))?;
    if metric.is_rate() {
        (best, worst) = (worst, best);
    }
    let show = |(point, value): (&Point, f64)| {
        format!("{} ({}: {})", Unit::of(metric).show(value), view.place_name(point), feels.word(value))
    };
    let is_one = is_one(Unit::of(metric), best.1, worst.1);
    let range = if is_one { show(best) } else { format!("from {} to {}", show(best), show(worst)) };
    let tone = if feels.word(worst.1) == feels.bad { Tone::Warn } else { Tone::Plain };
    Some(Finding::new(tone, format!("The median {} is {range}", metric.long())))
}

fn chart(view: &View, metric: Metric) -> Chart {
    let series = view.series();
    // Stalls count in the mean: scenarios differ by them.
    let is_mean = metric == Metric::Itl && series.len() > 1;
    let value = |point: &Point| {
        let p50 = point.p50(metric)?;
        if is_mean { mean(&point.summary.values(metric).values) } else { Some(p50) }
    };
    let lines = lines(view, Unit::of(metric), value);
    let (mut layers, mut band) = (Vec::new(), "");
    if let [series] = series[..] {
        let known = view.line(series).into_iter().filter_map(|point| {
            let spread = point.spread(metric);
            Some(Stretch { x: point.load(), low: spread.at(0.25)?, high: spread.at(0.75)? })
        });
        let stretches: Vec<Stretch> = known.collect();
        if !stretches.is_empty() {
            band = ", the band reaches from P25 to P75";
            layers.push(Layer::new("P25 to P75", Look::head(), Marks::Area(stretches)));
        }
    }
    let largest = view.charted().filter_map(value).fold(0.0, f64::max);
    let limits = feels(metric).into_iter().flat_map(|feels| feels.limits(Unit::of(metric)));
    layers
        .extend(limits.filter(|(_, value)| largest > NEAR * value).map(|(name, value)| threshold(view, &name, value)));
    let better = if metric.is_rate() { "More" } else { "Less" };
    let joined = if is_mean { "means (the words in the table are of medians)" } else { "medians" };
    Chart {
        id: format!("load-{}", metric.key().replace('_', "-")),
        title: capital(metric.long()),
        caption: format!("The line joins {joined}{band}. {better} is better."),
        x: view.axis(),
        y: Axis::new(metric.short(), Unit::of(metric)).zero(),
        layers: if lines.is_empty() { lines } else { [layers, lines].concat() },
    }
}

/// All figures of the only series, each against its value at the lowest load.
fn together(view: &View) -> Option<Chart> {
    let [series] = view.series()[..] else { return None };
    let line = view.line(series);
    let first = *line.first()?;
    let at_first = first.arrivals.name();
    let layers = FIGURES.iter().enumerate().filter_map(|(n, (metric, _))| {
        let base = first.p50(*metric).filter(|base| *base > 0.0)?;
        let known = line.iter().filter_map(|point| {
            let value = point.p50(*metric).filter(|value| *value > 0.0)?;
            let (name, load, times) = (metric.short(), point.arrivals.name(), Unit::Times.show(value / base));
            let hover = format!("{name} at {load}: {}, {times} that at {at_first}", Unit::of(*metric).show(value));
            Some(Place::new(point.load(), value / base, hover))
        });
        let places: Vec<Place> = known.collect();
        (places.len() > 1).then(|| Layer::new(metric.short(), Look::nth(n), Marks::MarkedLine(places)))
    });
    Some(Chart {
        id: "load-all".into(),
        title: "All figures together".into(),
        caption: format!("Each figure's median against its own at {at_first}: 2 is doubled, 0.5 is halved."),
        x: view.axis(),
        y: Axis::new(format!("against {at_first}"), Unit::Times).logarithmic(),
        layers: layers.collect(),
    })
}

/// The band between the best and the worst scenario at each load that all ran at. Nothing with one scenario alone, and nothing where
/// several targets would be a second reason for a difference.
fn band(view: &View, metric: Metric) -> Option<Chart> {
    if !view.has_scenarios() || view.has_targets() {
        return None;
    }
    let unit = Unit::of(metric);
    let ranges = view.loads().into_iter().filter_map(|load| ends(at_load(view, load), |point| point.p50(metric)));
    let ranges: Vec<[(&Point, f64); 2]> = ranges.collect();
    let line = |name: &str, end: usize| {
        let places = ranges.iter().map(|ends| view.place(ends[end].0, ends[end].1, unit)).collect();
        Layer::new(name, Look::nth(end), Marks::MarkedLine(places))
    };
    let stretch = |[(point, low), (_, high)]: &[(&Point, f64); 2]| Stretch { x: point.load(), low: *low, high: *high };
    let area = Layer::new("between scenarios", Look::head(), Marks::Area(ranges.iter().map(stretch).collect()));
    let last = *ranges.last().filter(|_| ranges.len() > 1)?;
    let [least, most] =
        last.map(|(point, p50)| format!("{} ({})", unit.show(p50), view.scenario(point.series.scenario)));
    Some(Chart {
        id: format!("range-{}", metric.key().replace('_', "-")),
        title: format!("{} between scenarios", capital(metric.long())),
        caption: format!(
            "The smallest and the largest median of a scenario at each load; at {}: {least} and {most}. A narrow band says that the length of \
             prompts and answers hardly matters.",
            last[0].0.arrivals.name()
        ),
        x: view.axis(),
        y: Axis::new(metric.short(), unit).zero(),
        layers: vec![area, line("smallest", 0), line("largest", 1)],
    })
}
