//! Every latency figure of every case: mean, deviation, extremes, and the percentiles that there are enough samples for.

use super::verdict::of_hardware;
use crate::figures::{self, Spread};
use crate::inputs::Inputs;
use crate::load::{INSTANT_NS, SLUGGISH_NS};
use crate::model::{Axis, Cell, Chart, Column, Finding, Layer, Look, Missing, Place, Section, Table, Tone, Unit};
use infergate_core::case::Phase;
use infergate_judge::{limit_fraction, summary_ns, variation};
use infergate_receipts::Metric;
use infergate_receipts::{CaseRecord, Probes, Receipt};

/// How figures of cases are made.
const PERCENTILES: &str = "All samples of all processes. A percentile is printed from the number of samples on for which a 95 % interval of it \
                           exists: 6 for the median, 72 for P95, 368 for P99.";
/// Each kind of case, as the legend names it.
const PHASES: [(Phase, &str); 3] =
    [(Phase::Prefill, "prefill"), (Phase::Decode, "decode"), (Phase::Generate, "generate")];
/// How far the roof goes on beyond the outermost case, as a factor.
const BEYOND: f64 = 2.0;

/// A line a figure of a case: times, and rates, of which less is worse.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let mut times = table("figures", "", [("p95", "P95"), ("p99", "P99")]).noted(PERCENTILES);
    let hardware =
        Column::numbers("of_hardware", "of hardware").about("the least possible time on this hardware / median");
    times.columns.push(hardware);
    let mut rates = table("rates", "Rates", [("p5", "P5"), ("p1", "P1")]).noted("Of rates the slow tail is P5 and P1.");
    for case in &receipt.cases {
        let figures = || figures::of_phase(case.id.phase()).iter().copied();
        for (at, figure) in figures().filter(|figure| *figure != Metric::DecodeSpeed).enumerate() {
            // It belongs to the whole case, whose first line says it.
            let share = if at == 0 { share(case, receipt) } else { Cell::text("") };
            times.row([row(figure, case, [0.95, 0.99]), vec![share]].concat());
        }
        for figure in figures().filter(|figure| *figure == Metric::DecodeSpeed) {
            rates.row(row(figure, case, [0.05, 0.01]));
        }
    }
    let section = Section::new("latency", "Latency by case").with([times, rates]);
    Some(section.with(smoothness(receipt)).ranked(5).with(roofline(receipt)))
}

fn table(id: &str, title: &str, tail: [(&'static str, &str); 2]) -> Table {
    let mut columns = vec![
        Column::words("case", "case"),
        Column::words("figure", "figure"),
        Column::numbers("samples", "samples"),
        Column::numbers("mean", "mean"),
        Column::numbers("deviation", "std dev").about("sample standard deviation, n - 1"),
        Column::numbers("min", "min"),
        Column::numbers("max", "max"),
        Column::numbers("p50", "median").about("over processes of each one's median, as everywhere on this page"),
    ];
    columns.extend(tail.map(|(id, title)| Column::numbers(id, title)));
    Table::new(id, title, columns)
}

fn row(figure: Metric, case: &CaseRecord, tail: [f64; 2]) -> Vec<Cell> {
    let spread = Spread::of(figure, case);
    let mut cells = vec![
        Cell::text(case.id.to_string()),
        Cell::text(figures::name(figure)),
        Cell::count(spread.count()),
        spread.mean(),
        spread.deviation(),
        spread.min(),
        spread.max(),
        spread.median(case),
    ];
    cells.extend(tail.map(|p| spread.percentile(p)));
    cells
}

/// Of the hardware's limit; what is missing is what the engine or the probes do not say.
fn share(case: &CaseRecord, receipt: &Receipt) -> Cell {
    let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), summary_ns(&case.processes));
    match of_hardware(fraction) {
        Cell::Missing(Missing::NoProbes) if receipt.probes.is_some() => Cell::Missing(Missing::EngineSilent),
        other => other,
    }
}

/// By the middle gap of the case with the longest context, as a stream would show it.
fn smoothness(receipt: &Receipt) -> Option<Finding> {
    let streamed = receipt.cases.iter().filter(|case| case.id.phase() != Phase::Prefill);
    let case = streamed.max_by_key(|case| case.id.prompt_tokens())?;
    let gap_ns = Spread::of(Metric::Itl, case).median(case).quantity()?.value;
    let class = match gap_ns {
        gap if gap < INSTANT_NS => "under 20 ms feels instant",
        gap if gap <= SLUGGISH_NS => "20 to 70 ms is acceptable",
        _ => "above 70 ms feels sluggish",
    };
    let said = format!("{}: the middle gap between tokens is {}: {class}", case.id, Unit::Ns.show(gap_ns));
    Some(Finding::new(Tone::Plain, said))
}

/// The roofline: how many operations a second each case reaches, against what it has to do for each byte it reads. Left of the
/// bend memory is the limit, right of it arithmetic. The roof is what the probes measured on this machine.
/// After S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
fn roofline(receipt: &Receipt) -> Option<Chart> {
    let probes = receipt.probes.as_ref()?.best();
    let known: Vec<(Phase, Place)> = receipt.cases.iter().filter_map(|case| place(receipt, case)).collect();
    let bend = probes.fma_flops_per_s / probes.memory_read_bytes_per_s;
    if known.is_empty() || !(bend.is_finite() && bend > 0.0) {
        return None;
    }
    let intensities = || known.iter().map(|(_, place)| place.x).chain([bend]);
    let from = intensities().fold(f64::INFINITY, f64::min) / BEYOND;
    let to = intensities().fold(0.0, f64::max) * BEYOND;
    let roof = Layer::Line {
        name: "hardware limit".into(),
        points: [from, bend, to].map(|intensity| under_the_roof(&probes, intensity)).into(),
        look: Look::ink().dashed(false),
        marked: false,
    };
    let cases = PHASES.into_iter().enumerate().filter_map(|(nth, (phase, name))| {
        let points: Vec<Place> = known.iter().filter(|(of, _)| *of == phase).map(|(_, place)| place.clone()).collect();
        (!points.is_empty()).then(|| Layer::Points { name: name.into(), points, look: Look::nth(nth) })
    });
    Some(Chart {
        id: "roofline".into(),
        title: "Roofline: operations a second against operations a byte".into(),
        caption: "Work that no implementation can avoid, over the measured time. Below the sloped part of the roof the memory's \
                  bandwidth is the limit, below the level part arithmetic."
            .into(),
        x: Axis::new("operations a byte", Unit::Plain).logarithmic(),
        y: Axis::new("speed", Unit::FlopsPerS).logarithmic(),
        layers: [roof].into_iter().chain(cases).collect(),
    })
}

/// A case in the chart. `None` without its work or time, or above the roof, where the probes saw less than the hardware gives.
fn place(receipt: &Receipt, case: &CaseRecord) -> Option<(Phase, Place)> {
    let (work, time_ns) = (case.work?, summary_ns(&case.processes)?);
    let share = limit_fraction(Some(&work), receipt.probes.as_ref(), Some(time_ns)).filter(|share| *share <= 1.0)?;
    let (x, y) = (work.intensity_flops_per_byte()?, work.all_flops? / time_ns * 1e9);
    let hover = format!(
        "{}: {} at {x:.1} operations a byte, {} of the hardware's limit",
        case.id,
        Unit::FlopsPerS.show(y),
        Unit::Fraction.show(share)
    );
    (y.is_finite() && y > 0.0).then_some((case.id.phase(), Place { x, y, hover }))
}

/// The most that this machine reaches at so many operations a byte.
fn under_the_roof(probes: &Probes, intensity: f64) -> Place {
    let y = (intensity * probes.memory_read_bytes_per_s).min(probes.fma_flops_per_s);
    let hover = format!("at most {} at {intensity:.1} operations a byte", Unit::FlopsPerS.show(y));
    Place { x: intensity, y, hover }
}

/// For a terminal: every metric of every case. The numbers are those that targets are judged by: medians over processes of each
/// process's median.
pub fn brief(receipt: &Receipt) -> Table {
    let headings = ["case", "time", "TTFT", "ITL p50", "TPOT", "decode", "throughput", "CV", "samples", "of hardware"];
    let mut table = Table::brief(&headings);
    for case in &receipt.cases {
        let value = |metric: Metric| Cell::number(figures::summary(metric, case), Unit::of(metric), Missing::Undefined);
        let generated = |metric: Metric| match case.id.phase() {
            Phase::Generate => value(metric),
            _ => Cell::Missing(Missing::Undefined),
        };
        let samples: usize = case.processes.iter().map(|process| process.samples_ns.len()).sum();
        table.row(vec![
            Cell::text(case.id.to_string()),
            Cell::number(summary_ns(&case.processes), Unit::Ns, Missing::NotMeasured),
            value(Metric::Ttft),
            Spread::of(Metric::Itl, case).percentile(0.5),
            generated(Metric::Tpot),
            value(Metric::DecodeSpeed),
            generated(Metric::OutputThroughput),
            Cell::number(variation(&case.processes), Unit::Fraction, Missing::Undefined),
            Cell::count(samples),
            share(case, receipt),
        ]);
    }
    table
}
