//! Every latency figure of every case: mean, deviation, extremes, and the percentiles that there are enough samples for.

use crate::gate::limit_fraction;
use crate::receipt::{CaseRecord, Receipt};
use crate::report::figures::{Figure, Spread};
use crate::report::inputs::Inputs;
use crate::report::model::{Cell, Column, Section, Table};
use crate::report::sections::verdict::of_hardware;

/// A line a figure of a case.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let mut table = Table::new(
        "figures",
        "",
        vec![
            Column::words("case", "case"),
            Column::words("figure", "figure"),
            Column::numbers("samples", "samples"),
            Column::numbers("mean", "mean"),
            Column::numbers("deviation", "std dev").about("sample standard deviation, n - 1"),
            Column::numbers("min", "min"),
            Column::numbers("max", "max"),
            Column::numbers("p50", "P50"),
            Column::numbers("p95", "P95"),
            Column::numbers("p99", "P99"),
            Column::numbers("of_hardware", "of hardware").about("the least possible time on this hardware / median"),
        ],
    )
    .noted("All samples of all processes. A percentile is printed from the number of samples on for which a 95 % interval of it exists: 6 for P50, 72 for P95, 368 for P99.");
    for case in &receipt.cases {
        for (at, figure) in Figure::of(case.id.phase()).iter().enumerate() {
            table.row(row(*figure, case, receipt, at == 0));
        }
    }
    (!table.rows.is_empty()).then(|| Section::new("latency", "Latency by case").with(table))
}

fn row(figure: Figure, case: &CaseRecord, receipt: &Receipt, first: bool) -> Vec<Cell> {
    let spread = Spread::of(figure, case);
    let fraction = limit_fraction(case.work.as_ref(), receipt.probes.as_ref(), case_ns(case));
    vec![
        Cell::text(case.id.to_string()),
        Cell::text(figure.name()),
        Cell::count(spread.count()),
        spread.mean(),
        spread.deviation(),
        spread.min(),
        spread.max(),
        spread.percentile(0.5),
        spread.percentile(0.95),
        spread.percentile(0.99),
        // It belongs to the whole case, whose first line says it.
        if first { of_hardware(fraction) } else { Cell::text("") },
    ]
}

fn case_ns(case: &CaseRecord) -> Option<f64> {
    crate::gate::summary_ns(&case.processes)
}
