//! An earlier run beside this one, figure by figure. It shows and does not judge: the verdict does that.

use crate::figures;
use crate::inputs::Inputs;
use crate::model::{Cell, Missing, Rows, Section, Unit};
use infergate_core::case::Case;
use infergate_receipts::{Metric, Receipt};

const ABOUT: &str =
    "Both runs were measured at their own time: on a shared machine the times of two hours differ by tens of percent.";

/// A line a figure of a case that either run has.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let (base, head) = (inputs.base.as_ref()?, inputs.head.as_ref()?);
    let mut cases: Vec<Case> = head.cases.iter().map(|case| case.id).collect();
    cases.extend(base.cases.iter().map(|case| case.id).filter(|id| head.cases.iter().all(|case| case.id != *id)));
    let figures =
        cases.into_iter().flat_map(|id| figures::of_phase(id.phase()).iter().map(move |metric| (id, *metric)));
    let of = |run: &Receipt, (id, metric): (Case, Metric)| {
        let case = run.cases.iter().find(|case| case.id == id)?;
        figures::summary(metric, case)
    };
    let value = |run| move |figure: &(Case, Metric)| Cell::of(of(run, *figure), Unit::of(figure.1));
    let table = Rows::of("comparison", "", figures)
        .words("case", "case", |(id, _)| id.to_string())
        .words("figure", "figure", |(_, metric)| figures::name(*metric))
        .numbers("earlier", "earlier", value(base))
        .about("median over processes of each one's median")
        .numbers("this", "this run", value(head))
        .numbers("change", "change", |figure| {
            let change = of(base, *figure).zip(of(head, *figure)).map(|(before, after)| after / before - 1.0);
            Cell::number(change, Unit::Change, Missing::NoBase)
        })
        .table();
    Some(Section::new("comparison", "Comparison with the earlier run").with([ABOUT]).with([table]))
}
