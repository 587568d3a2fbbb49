//! Absolute limits of the team's own, met or missed.

use crate::inputs::Inputs;
use crate::model::{Cell, Column, Finding, Missing, Section, Table, Tone, Unit};
use crate::{units, words};
use infergate_receipts::{Evidence, Outcome, TargetMetric};

pub fn topic(inputs: &Inputs) -> Option<Section> {
    let verdict = inputs.verdict.as_ref()?;
    let columns = vec![
        Column::words("target", "target"),
        Column::words("case", "case"),
        Column::numbers("limit", "limit"),
        Column::numbers("achieved", "achieved").about("median over processes of each one's median"),
        Column::words("verdict", "verdict"),
    ];
    let mut table = Table::new("targets", "", columns);
    let mut met = 0;
    for row in &verdict.rows {
        let Evidence::Target(target) = &row.evidence else { continue };
        met += usize::from(row.outcome == Outcome::Pass);
        let cells = vec![
            Cell::foreign(&target.target.to_string()),
            Cell::text(row.subject.to_string()),
            quantity(target.metric, Some(target.limit)),
            quantity(target.metric, target.value),
            Cell::text(words::ending(row)).toned(Tone::of(row.outcome)),
        ];
        table.notable_row(cells, row.outcome.exit_code() != 0);
    }
    let finding = finding(met, table.rows.len());
    (!table.rows.is_empty()).then(|| Section::new("targets", "Targets").with([table]).with([finding]))
}

/// A value of `metric`, whose unit its name says, in this report's units.
fn quantity(metric: TargetMetric, value: Option<f64>) -> Cell {
    let (unit, factor) = Unit::of_target(metric);
    Cell::number(value.map(|value| value * factor), unit, Missing::NotMeasured)
}

fn finding(met: usize, of: usize) -> Finding {
    Finding::new(if met == of { Tone::Good } else { Tone::Bad }, format!("{met} of {} met", units::many(of, "target")))
}
