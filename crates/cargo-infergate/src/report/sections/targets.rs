//! Absolute limits of the team's own, met or missed.

use crate::receipt::{Evidence, TargetMetric};
use crate::report::inputs::Inputs;
use crate::report::model::{Cell, Column, Missing, Section, Table, Tone, Unit};
use crate::report::words;

/// A line a target and case.
pub fn section(inputs: &Inputs) -> Option<Section> {
    let verdict = inputs.verdict.as_ref()?;
    let mut table = Table::new(
        "targets",
        "",
        vec![
            Column::words("target", "target"),
            Column::words("case", "case"),
            Column::numbers("limit", "limit"),
            Column::numbers("achieved", "achieved").about("median over processes of each one's median"),
            Column::words("verdict", "verdict"),
        ],
    );
    for row in &verdict.rows {
        let Evidence::Target(target) = &row.evidence else { continue };
        let cells = vec![
            Cell::foreign(&target.target.to_string()),
            Cell::text(row.subject.to_string()),
            quantity(target.metric, Some(target.limit)),
            quantity(target.metric, target.value),
            Cell::text(words::ending(row)).toned(Tone::of(row.outcome)),
        ];
        table.notable_row(cells, row.outcome.exit_code() != 0);
    }
    (!table.rows.is_empty()).then(|| Section::new("targets", "Targets").with(table))
}

/// A value of `metric`, whose unit its name says, in this report's units.
fn quantity(metric: TargetMetric, value: Option<f64>) -> Cell {
    let (unit, factor) = match metric {
        TargetMetric::TtftMs | TargetMetric::ItlMs | TargetMetric::TpotMs | TargetMetric::E2eMs => (Unit::Ns, 1e6),
        TargetMetric::TokensPerS | TargetMetric::OutputTokensPerS => (Unit::TokensPerS, 1.0),
        TargetMetric::CvPercent => (Unit::Fraction, 0.01),
        TargetMetric::AllocationsPerToken => (Unit::Count, 1.0),
        TargetMetric::PeakLiveBytes => (Unit::Bytes, 1.0),
    };
    Cell::number(value.map(|value| value * factor), unit, Missing::NotMeasured)
}
