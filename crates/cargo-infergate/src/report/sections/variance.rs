//! How much each figure varies: within all samples, and between fresh processes.

use crate::report::figures::{self, Spread};
use crate::report::inputs::Inputs;
use crate::report::model::{Cell, Column, Section, Table, Unit};

/// A line a figure of a case.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let mut table = Table::new(
        "variance",
        "",
        vec![
            Column::words("case", "case"),
            Column::words("figure", "figure"),
            Column::numbers("deviation", "std dev").about("sample standard deviation, n - 1"),
            Column::numbers("cv", "CV of samples").about("standard deviation / mean of all samples"),
            Column::numbers("cv_processes", "CV of processes").about("of the medians of fresh processes"),
        ],
    );
    for case in &receipt.cases {
        for &figure in figures::of_phase(case.id.phase()) {
            let spread = Spread::of(figure, case);
            let between = match figures::variation(figure, case) {
                Ok(cv) => Cell::number(Some(cv), Unit::Fraction, crate::report::model::Missing::Undefined),
                Err(missing) => Cell::Missing(missing),
            };
            table.row(vec![
                Cell::text(case.id.to_string()),
                Cell::text(figures::name(figure)),
                spread.deviation(),
                spread.variation(),
                between,
            ]);
        }
    }
    (!table.rows.is_empty()).then(|| Section::new("variance", "Variance").with(table))
}
