//! Every latency figure of every case: mean, deviation, extremes, and the percentiles that there are enough samples for.

use super::verdict::of_hardware;
use crate::figures::{self, CaseFigure};
use crate::inputs::Inputs;
use crate::load::feels;
use crate::model::{Finding, Rows, Section, Table, Tone};
use crate::units;
use infergate_core::case::{Case, Phase};
use infergate_core::stats::{coefficient_of_variation, median};
use infergate_judge::CV_LIMIT;
use infergate_receipts::{CaseRecord, Metric, Receipt};

/// How figures of cases are made.
const PERCENTILES: &str = "The median is over processes, the rest over all samples. A percentile needs enough samples \
     for a 95 % interval; the gaps of one answer count as one.";
/// Up to this a case is steady: as much as a gate calls a change.
pub const STEADY: f64 = 0.02;
/// Samples that a median needs for its drift to be no luck of one of them.
const LEAST_OF_HALF: usize = 5;

/// A line a figure of a case: times, and rates, of which less is worse.
pub fn topic(inputs: &Inputs) -> Option<Section> {
    let receipt = inputs.head.as_ref()?;
    let cases = receipt.cases.iter();
    let all =
        cases.flat_map(|case| figures::of_phase(case.id.phase()).iter().map(|metric| CaseFigure::of(*metric, case)));
    let (rates, times): (Vec<_>, Vec<_>) = all.partition(|spread| spread.metric.is_rate());
    let times = table(Rows::of("figures", "", times))
        .titled_numbers("p95", "P95", |spread| spread.percentile(0.95))
        .detail()
        .titled_numbers("p99", "P99", |spread| spread.percentile(0.99))
        .detail()
        .titled_numbers("of_hardware", "of hardware", |spread| {
            let is_gated = spread.metric == Metric::gated(spread.case.id);
            if is_gated { of_hardware(figures::share_of_hardware(spread.case, receipt)) } else { "".into() }
        })
        .about("the least possible time on this hardware / median")
        .table()
        .noted(PERCENTILES);
    let rates = table(Rows::of("rates", "Rates", rates))
        .titled_numbers("p5", "P5", |spread| spread.percentile(0.05))
        .detail()
        .titled_numbers("p1", "P1", |spread| spread.percentile(0.01))
        .detail()
        .table();
    let section = Section::new("latency", "Latency by case").with([times, rates].map(Table::on_terminal));
    let broken = receipt.invalid.iter().map(|why| format!("invalid: {why}"));
    let broken = broken.chain(receipt.partial.then(|| "partial: the run was cut short".into()));
    let mut broken: Vec<Finding> = broken.map(|why| Finding::new(Tone::Bad, why)).collect();
    if broken.is_empty() {
        let runs = receipt.cases.iter().map(|case| case.processes.len()).min().unwrap_or_default();
        let (cases, runs) = (units::many(receipt.cases.len(), "case"), units::many(runs, "fresh run"));
        broken.push(Finding::new(Tone::Good, format!("{cases} completed, each in {runs}")));
    }
    let section = section.with([broken]).with(steadiness(receipt)).with(felt(receipt));
    Some(section.with([receipt.cases.iter().filter_map(analysis).collect::<Vec<_>>()]))
}

/// How the samples of a case spread and drift, in a sentence; `None` where they are too few.
fn analysis(case: &CaseRecord) -> Option<String> {
    let metric = Metric::gated(case.id);
    let spread = CaseFigure::of(metric, case);
    let [least, most] = [spread.min(), spread.max()].map(|cell| cell.value());
    let processes = case.processes.iter();
    let within = processes.filter_map(|process| coefficient_of_variation(&process.values(metric, case.id.phase())));
    let within = median(&within.collect::<Vec<_>>())?;
    let between = figures::variation(metric, case).value();
    let mut parts = vec![format!("the longest sample takes {} as long as the shortest", units::times(most? / least?))];
    parts.extend(
        drift(case)
            .filter(|drift| drift.abs() > STEADY)
            .map(|drift| format!("in the second half of a process the median changes by {}", units::change(drift))),
    );
    parts.extend(between.filter(|between| *between > 2.0 * within).map(|between| {
        format!(
            "processes differ by {}, samples of a typical one by {}: the machine changed between processes",
            units::percent(between),
            units::percent(within)
        )
    }));
    Some(format!("{} of {}: {}", metric.short(), case.id, parts.join("; ")))
}

/// From the first to the second half of each process, in the median; `None` where samples are too few.
pub fn drift(case: &CaseRecord) -> Option<f64> {
    let halves = case.processes.iter().filter_map(|process| {
        let values = process.values(Metric::gated(case.id), case.id.phase());
        let (early, late) = values.split_at(values.len() / 2);
        (early.len() >= LEAST_OF_HALF).then_some(median(late)? / median(early)?)
    });
    Some(median(&halves.collect::<Vec<_>>())? - 1.0)
}

fn table(rows: Rows<CaseFigure<'_>>) -> Rows<CaseFigure<'_>> {
    rows.words("case", |spread| spread.case.id.to_string())
        .words("figure", |spread| figures::name(spread.metric))
        .numbers("samples", |spread| spread.values.len())
        .numbers("mean", CaseFigure::mean)
        .titled_numbers("deviation", "std dev", CaseFigure::deviation)
        .about("sample standard deviation, n - 1")
        .detail()
        .titled_numbers("cv", "CV", CaseFigure::variation)
        .about("standard deviation / mean of all samples")
        .detail()
        .titled_numbers("cv_processes", "CV of processes", |spread| figures::variation(spread.metric, spread.case))
        .about("of the medians of fresh processes")
        .numbers("min", CaseFigure::min)
        .numbers("max", CaseFigure::max)
        .titled_numbers("p50", "median", CaseFigure::median)
        .about("of each process's median")
}

/// Coefficients of variation of the figures that cases are gated by, the largest first; and how many are above the limit.
fn variations(receipt: &Receipt) -> (Vec<(Case, f64)>, usize) {
    let known = receipt.cases.iter().filter_map(|case| {
        let cv = figures::variation(Metric::gated(case.id), case);
        Some((case.id, cv.value()?))
    });
    let mut cases: Vec<(Case, f64)> = known.collect();
    cases.sort_by(|a, b| b.1.total_cmp(&a.1));
    let above = cases.iter().filter(|(_, cv)| *cv > CV_LIMIT).count();
    (cases, above)
}

/// The case whose processes differ most, where any differs by more than the limit; else how steady they are.
fn steadiness(receipt: &Receipt) -> Option<Finding> {
    let (cases, above) = variations(receipt);
    let ((worst, cv), cases) = (*cases.first()?, cases.len());
    let [shown, limit] = [cv, CV_LIMIT].map(units::percent);
    let name = format!("{} of {worst}", Metric::gated(worst).short());
    let most = format!("{name} varies most, by {shown}");
    Some(match above {
        0 if cv <= STEADY => {
            Finding::new(Tone::Good, format!("All {cases} cases are steady between processes; {most}"))
        }
        0 => Finding::plain(format!(
            "Processes differ by up to {shown} ({name}): a smaller difference between two runs is noise"
        )),
        above => Finding::warn(format!("{above} of {cases} cases vary by more than {limit} between processes; {most}")),
    })
}

/// The title of a run whose times are no measure of the engine; `None` for any other.
pub fn too_unsteady(inputs: &Inputs) -> Option<String> {
    let (cases, above) = variations(inputs.head.as_ref()?);
    let ((_, cv), all) = (cases.first()?, cases.len());
    let which = if above == all { "these times".into() } else { format!("the times of {above} of {all} cases") };
    let cv = units::percent(*cv);
    (above > 0).then(|| format!("Do not use {which}: between processes they vary by up to {cv}"))
}

/// What a reader of a stream would make of the case with the longest prompt.
fn felt(receipt: &Receipt) -> Option<Finding> {
    let streamed = receipt.cases.iter().filter(|case| case.id.phase() != Phase::Prefill);
    let case = streamed.max_by_key(|case| case.id.prompt_tokens())?;
    let told = |metric| {
        let ns = figures::summary(metric, case)?;
        Some(format!("{} ({})", units::duration(ns), feels(metric)?.word(ns)))
    };
    // A decode step has no first token.
    let first = told(Metric::Ttft).map_or_else(String::new, |ttft| format!("the first token comes after {ttft}, "));
    Some(Finding::plain(format!("{}: {first}the median gap between tokens is {}", case.id, told(Metric::Itl)?)))
}
