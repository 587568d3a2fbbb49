//! Every latency figure of every case: mean, deviation, extremes, and the percentiles that there are enough samples for.

use crate::gate::limit_fraction;
use crate::receipt::{CaseRecord, Metric, Receipt};
use crate::report::figures::{self, Spread};
use crate::report::inputs::Inputs;
use crate::report::model::{Cell, Column, Missing, Section, Table};
use crate::report::sections::verdict::of_hardware;
use crate::report::words::pages as words;

/// A line a figure of a case: times, and rates, of which less is worse.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let mut times = table("figures", "", [("p95", "P95"), ("p99", "P99")]).noted(words::PERCENTILES);
    let hardware =
        Column::numbers("of_hardware", "of hardware").about("the least possible time on this hardware / median");
    times.columns.push(hardware);
    let mut rates = table("rates", "Rates", [("p5", "P5"), ("p1", "P1")]).noted(words::RATES);
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
    let section = Section::new("latency", "Latency by case");
    match (times.rows.is_empty(), rates.rows.is_empty()) {
        (true, _) => None,
        (false, true) => Some(section.with(times)),
        (false, false) => Some(section.with(times).with(rates)),
    }
}

/// A table with its slow tail.
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
    let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), case_ns(case));
    match of_hardware(fraction) {
        Cell::Missing(Missing::NoProbes) if receipt.probes.is_some() => Cell::Missing(Missing::EngineSilent),
        other => other,
    }
}

fn case_ns(case: &CaseRecord) -> Option<f64> {
    crate::gate::summary_ns(&case.processes)
}
