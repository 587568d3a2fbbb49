//! An earlier run beside this one, figure by figure. It shows and does not judge: the verdict does that.

use super::latency::STEADY;
use crate::figures;
use crate::inputs::Inputs;
use crate::model::{Cell, Missing, Rows, Section, Unit};
use crate::units;
use infergate_core::case::{Case, Phase};
use infergate_judge::limit_fraction;
use infergate_receipts::{Metric, Receipt};

const ABOUT: &str = "Shared machines differ by tens of percent from hour to hour. A case that one run lacks is \
                     compared with the closest prompt length.";

/// A figure of a case of this run, and the case of the earlier run that stands beside it.
type Beside = (Metric, Case, Case);

/// A line a figure of each case.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let (base, head) = (inputs.base.as_ref()?, inputs.head.as_ref()?);
    let rows = head.cases.iter().flat_map(|case| {
        let beside = nearest(base, case.id).filter(|beside| nearest(head, *beside) == Some(case.id));
        figures::of_phase(case.id.phase()).iter().filter_map(move |metric| Some((*metric, case.id, beside?)))
    });
    let rows: Vec<Beside> = rows.collect();
    let of = |run: &Receipt, metric, id| {
        let case = run.cases.iter().find(|case| case.id == id)?;
        figures::summary(metric, case)
    };
    let before = |(metric, _, beside): &Beside| of(base, *metric, *beside);
    let after = |(metric, id, _): &Beside| of(head, *metric, *id);
    let unit = |row: &Beside| match Unit::of(row.0) {
        Unit::Ns => Unit::PreciseNs(units::digits_of_change(before(row), after(row))),
        rate => rate,
    };
    let longer = |(_, id, beside): &Beside| id.prompt_tokens() as f64 / beside.prompt_tokens() as f64;
    let output = |(_, id, beside): &Beside| {
        let is_other = id != beside && id.phase() == Phase::Generate;
        is_other.then(|| id.output_tokens() as f64 / beside.output_tokens() as f64)
    };
    let growths = rows.iter().filter_map(|row| {
        let (metric, id, beside) = row;
        let is_told = id != beside && *metric == Metric::gated(*id);
        let grows = after(row).filter(|_| is_told)? / before(row)?;
        let work = least_ns(head, head, *id)? / least_ns(base, head, *beside)?;
        let noise = 1.0 + [variation(head, *id), variation(base, *beside)].into_iter().fold(STEADY, f64::max);
        let how = if (work.min(1.0) / noise..=work.max(1.0) * noise).contains(&grows) {
            "the lengths explain it"
        } else {
            "the lengths alone do not explain it"
        };
        let (figure, [grows, work]) = (figures::name(*metric), [grows, work].map(units::times));
        Some(format!(
            "{id} against {beside}: {figure} is {grows} as long, and the least time for its work {work}: {how}"
        ))
    });
    let growths: Vec<String> = growths.collect();
    let table = Rows::of("comparison", "", rows)
        .words("case", "case", |(_, id, _)| id.to_string())
        .words(
            "beside",
            "earlier case",
            |(_, id, beside)| {
                if beside == id { String::new() } else { beside.to_string() }
            },
        )
        .words("figure", "figure", |(metric, ..)| figures::name(*metric))
        .numbers("earlier", "earlier", |row| Cell::of(before(row), unit(row)))
        .about("over processes")
        .numbers("this", "this run", |row| Cell::of(after(row), unit(row)))
        .numbers("change", "change", |row| {
            let change = before(row).zip(after(row)).map(|(before, after)| after / before - 1.0);
            Cell::number(change, Unit::Change, Missing::NoBase)
        })
        .numbers("prompt", "prompt", |row| Cell::known((row.1 != row.2).then(|| longer(row)), Unit::Times))
        .about("its length against the earlier case's")
        .numbers("output", "output", |row| Cell::known(output(row), Unit::Times))
        .table();
    Some(Section::new("comparison", "Comparison with the earlier run").with([ABOUT]).with([table]).with([growths]))
}

/// How much the processes of a case differ; 0 where that is not known.
fn variation(run: &Receipt, id: Case) -> f64 {
    let case = run.cases.iter().find(|case| case.id == id);
    case.and_then(|case| figures::variation(Metric::gated(id), case).value()).unwrap_or_default()
}

/// The least time in which the hardware of `machine` could do a case of `run`.
fn least_ns(run: &Receipt, machine: &Receipt, id: Case) -> Option<f64> {
    let case = run.cases.iter().find(|case| case.id == id)?;
    limit_fraction(case.work.as_ref(), machine.probes.as_ref(), Some(1.0))
}

/// The same case of another run, or of its phase the one with the closest prompt length.
fn nearest(run: &Receipt, id: Case) -> Option<Case> {
    let cases = run.cases.iter().map(|case| case.id);
    let alike = cases.filter(|other| *other == id || (id.phase() != Phase::Bench && other.phase() == id.phase()));
    alike.min_by_key(|other| (*other != id, other.prompt_tokens().abs_diff(id.prompt_tokens())))
}
