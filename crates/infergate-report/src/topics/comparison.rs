//! An earlier run beside this one, figure by figure. It shows and does not judge: the verdict does that.

use crate::figures;
use crate::inputs::Inputs;
use crate::model::{Cell, Column, Missing, Section, Table, Unit};
use infergate_receipts::CaseRecord;

/// A line a figure of a case that either run has.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let (base, head) = (inputs.base.as_ref()?, inputs.head.as_ref()?);
    let columns = vec![
        Column::words("case", "case"),
        Column::words("figure", "figure"),
        Column::numbers("earlier", "earlier").about("median over processes of each one's median"),
        Column::numbers("this", "this run").about("median over processes of each one's median"),
        Column::numbers("change", "change"),
    ];
    let mut table = Table::new("comparison", "", columns)
    .noted("Both runs were measured at their own time: on a shared machine the times of two hours differ by tens of percent.");
    let find = |cases: &'_ [CaseRecord], id| cases.iter().position(|case| case.id == id);
    let gone = base.cases.iter().filter(|case| find(&head.cases, case.id).is_none());
    for id in head.cases.iter().chain(gone).map(|case| case.id) {
        let was = find(&base.cases, id).and_then(|at| base.cases.get(at));
        let is = find(&head.cases, id).and_then(|at| head.cases.get(at));
        for &figure in figures::of_phase(id.phase()) {
            let (before, after) = (
                was.and_then(|case| figures::summary(figure, case)),
                is.and_then(|case| figures::summary(figure, case)),
            );
            let change =
                before.zip(after).filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before - 1.0);
            table.row(vec![
                Cell::text(id.to_string()),
                Cell::text(figures::name(figure)),
                Cell::number(before, Unit::of(figure), Missing::NotMeasured),
                Cell::number(after, Unit::of(figure), Missing::NotMeasured),
                Cell::number(change, Unit::Change, Missing::NoBase),
            ]);
        }
    }
    Some(Section::new("comparison", "Comparison with the earlier run").with([table]))
}
