//! An earlier run beside this one, figure by figure. It shows and does not judge: the verdict does that.

use super::ends;
use super::latency::STEADY;
use crate::inputs::Inputs;
use crate::model::{Cell, Finding, Missing, Rows, Section, Unit};
use crate::{figures, units};
use infergate_core::case::{Case, Phase};
use infergate_judge::CV_LIMIT;
use infergate_receipts::{CaseRecord, Metric, Receipt};

const ABOUT: &str = "Shared machines differ by tens of percent from hour to hour. A case that one run lacks is \
                     compared with the closest prompt length.";

/// A figure of a case of this run, and the case of the earlier run that stands beside it.
type Beside<'a> = (Metric, &'a CaseRecord, &'a CaseRecord);

/// A line a figure of each case.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let (base, head) = (inputs.base.as_ref()?, inputs.head.as_ref()?);
    let pairs = head.cases.iter().filter_map(|case| {
        let beside = nearest(base, case.id)?;
        (nearest(head, beside.id)?.id == case.id).then_some((case, beside))
    });
    let pairs: Vec<(&CaseRecord, &CaseRecord)> = pairs.collect();
    let figures_of = |case: &CaseRecord| figures::of_phase(case.id.phase()).iter();
    let rows = pairs.iter().flat_map(|(case, beside)| figures_of(case).map(move |metric| (*metric, *case, *beside)));
    let before = |(metric, _, beside): &Beside| figures::summary(*metric, beside);
    let after = |(metric, case, _): &Beside| figures::summary(*metric, case);
    let unit = |row: &Beside| match Unit::of(row.0) {
        Unit::Ns => Unit::PreciseNs(units::digits_of_change(before(row), after(row))),
        rate => rate,
    };
    let is_other = |(_, case, beside): &Beside| case.id != beside.id;
    let longer = |(_, case, beside): &Beside| case.id.prompt_tokens() as f64 / beside.id.prompt_tokens() as f64;
    let output = |(_, case, beside): &Beside| {
        (case.id.phase() == Phase::Generate).then(|| case.id.output_tokens() as f64 / beside.id.output_tokens() as f64)
    };
    let table = Rows::of("comparison", "", rows)
        .words("case", |(_, case, _)| case.id.to_string())
        .titled_words("beside", "earlier case", |row| if is_other(row) { row.2.id.to_string() } else { String::new() })
        .words("figure", |(metric, ..)| figures::name(*metric))
        .numbers("earlier", |row| Cell::of(before(row), unit(row)))
        .about("over processes")
        .titled_numbers("this", "this run", |row| Cell::of(after(row), unit(row)))
        .numbers("change", |row| {
            let change = before(row).zip(after(row)).map(|(before, after)| after / before - 1.0);
            Cell::number(change, Unit::Change, Missing::NoBase)
        })
        .numbers("prompt", |row| Cell::known(is_other(row).then(|| longer(row)), Unit::Times))
        .about("its length against the earlier case's")
        .numbers("output", |row| Cell::known(output(row).filter(|_| is_other(row)), Unit::Times))
        .table();
    let section = Section::new("comparison", "Comparison with the earlier run").with([ABOUT]).with([table]);
    let unsteady = ends(pairs.iter().map(|(_, beside)| *beside), |beside| Some(variation(beside)));
    let unsteady = unsteady.filter(|[_, (_, cv)]| *cv > CV_LIMIT).map(|[_, (beside, cv)]| {
        let cv = units::percent(cv);
        Finding::warn(format!("{} of the earlier run varies by {cv} between processes: do not compare it", beside.id))
    });
    let steady = pairs.iter().filter(|(_, beside)| variation(beside) <= CV_LIMIT);
    let growths = steady.filter_map(|(case, beside)| growth((base, beside), (head, case)));
    Some(section.with(unsteady).with([growths.collect::<Vec<String>>()]))
}

/// Whether what a case does more than another one explains how much longer it takes; `None` of one case with itself.
fn growth((base, beside): (&Receipt, &CaseRecord), (head, case): (&Receipt, &CaseRecord)) -> Option<String> {
    let metric = Metric::gated(case.id);
    let grows = figures::summary(metric, case).filter(|_| case.id != beside.id)? / figures::summary(metric, beside)?;
    let work = figures::least_ns(case, head)? / figures::least_ns(beside, base)?;
    let noise = 1.0 + [variation(case), variation(beside)].into_iter().fold(STEADY, f64::max);
    let how =
        if (work.min(1.0) / noise..=work.max(1.0) * noise).contains(&grows) { "explains" } else { "does not explain" };
    let (figure, [grows, work]) = (figures::name(metric), [grows, work].map(units::times));
    Some(format!(
        "{} against {}: {figure} is {grows} as long; its work, which would take {work} as long at the least, {how} it",
        case.id, beside.id
    ))
}

/// How much the processes of a case differ; 0 where that is not known.
fn variation(case: &CaseRecord) -> f64 {
    figures::variation(Metric::gated(case.id), case).value().unwrap_or_default()
}

/// The same case of another run, or of its phase the one with the closest prompt length.
fn nearest(run: &Receipt, id: Case) -> Option<&CaseRecord> {
    let is_alike =
        |other: &&CaseRecord| other.id == id || (id.phase() != Phase::Bench && other.id.phase() == id.phase());
    let alike = run.cases.iter().filter(is_alike);
    alike.min_by_key(|other| (other.id != id, other.id.prompt_tokens().abs_diff(id.prompt_tokens())))
}
