//! Absolute limits, judged by what head was measured to take.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::time;
use infergate_core::case::{Case, Phase};
use infergate_core::printable::first_of;
use infergate_core::stats::{coefficient_of_variation, median};
use infergate_receipts::{
    BlockCase, CaseRecord, Counter, Evidence, Metric, Outcome, PairedReceipt, ProcessSamples, Reason, Receipt, Remedy,
    Subject, Target, TargetEvidence, TargetMetric, VerdictRow,
};

/// The value of `record`: the median over processes of each process's median, the variation of all samples, or the largest
/// count seen. `None` where the metric is undefined for the case or nothing was timed or counted.
pub fn value(metric: TargetMetric, record: &CaseRecord) -> Option<f64> {
    if metric.is_counted() {
        return count(metric, &record.counters);
    }
    let phase = record.id.phase();
    if phase == Phase::Bench {
        return None;
    }
    if metric == TargetMetric::CvPercent {
        let time = TargetMetric::Of(Metric::gated(record.id));
        return cv_percent(record.processes.iter().flat_map(|process| samples(time, phase, process)));
    }
    median(&time::medians(&record.processes, |process| samples(metric, phase, process)))
}

fn count(metric: TargetMetric, counters: &BTreeMap<String, Counter>) -> Option<f64> {
    counters.get(&metric.name()).map(|counter| counter.max as f64)
}

fn samples(metric: TargetMetric, phase: Phase, process: &ProcessSamples) -> Vec<f64> {
    let TargetMetric::Of(metric) = metric else { return Vec::new() };
    process.values(metric, phase).into_iter().map(|value| in_its_unit(metric, value)).collect()
}

/// Whether a case has the metric, which is none that is counted.
fn is_defined(metric: TargetMetric, case: Case) -> bool {
    let is_of_steps = matches!(metric, TargetMetric::Of(Metric::Itl | Metric::Tpot | Metric::DecodeSpeed));
    match case.phase() {
        Phase::Prefill => !is_of_steps,
        Phase::Decode => is_of_steps || metric == TargetMetric::CvPercent,
        Phase::Generate => case.output_tokens() > 1 || !is_of_steps,
        Phase::Bench => false,
    }
}

/// The value in a paired run: the median over head's processes of each one's median, or the variation of all samples.
fn paired_value(metric: TargetMetric, case: Case, receipt: &PairedReceipt) -> Option<f64> {
    let suite = receipt.cases.iter().find(|known| known.id == case);
    let iterations = suite.map_or(1, |known| known.iterations_per_sample.max(1));
    let blocks = receipt.blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case);
    if metric == TargetMetric::CvPercent {
        let time = TargetMetric::Of(Metric::gated(case));
        return cv_percent(blocks.flat_map(|block| of_block(time, case, block, iterations)));
    }
    median(&blocks.filter_map(|block| median(&of_block(metric, case, block, iterations))).collect::<Vec<f64>>())
}

/// Head's values in one block, whose times are sums over `iterations_per_sample`; empty where only whole iterations were
/// timed and this needs their tokens.
fn of_block(metric: TargetMetric, case: Case, block: &BlockCase, iterations_per_sample: usize) -> Vec<f64> {
    let whole = |value: fn(f64, f64) -> f64| {
        let tokens = case.output_tokens() as f64;
        block.head_ns.iter().map(|ns| value(*ns as f64 / iterations_per_sample as f64, tokens)).collect()
    };
    match (case.phase(), metric) {
        (Phase::Generate, _) if !block.head_tokens_ns.is_empty() => {
            let samples_ns = block.head_tokens_ns.clone();
            samples(metric, Phase::Generate, &ProcessSamples { samples_ns, iterations_per_sample: 1 })
        }
        (Phase::Generate, TargetMetric::Of(Metric::E2e)) => whole(|ns, _| in_its_unit(Metric::E2e, ns)),
        (Phase::Generate, TargetMetric::Of(Metric::OutputThroughput)) => whole(|ns, tokens| tokens * 1e9 / ns),
        (Phase::Generate, _) => Vec::new(),
        (phase, _) => {
            let samples_ns = block.head_ns.iter().map(|ns| vec![*ns]).collect();
            samples(metric, phase, &ProcessSamples { samples_ns, iterations_per_sample })
        }
    }
}

/// One row; `at_best` is how a run ends that was cut short or broke. What is not known never passes: a metric that the subject has not
/// (`is_defined`) is missed, one that was not measured is inconclusive.
fn row(
    target: &Target,
    subject: Subject,
    value: Option<f64>,
    is_defined: bool,
    at_best: Option<(Outcome, Reason)>,
) -> VerdictRow {
    let (metric, limit) = (target.metric(), target.limit());
    let evidence = Evidence::Target(TargetEvidence { target: target.clone(), metric, limit, value });
    let row = |outcome| VerdictRow::new(subject, outcome, evidence);
    let remedy = match (metric.is_counted(), is_defined) {
        (true, _) => Remedy::CountOrNameOtherCases,
        (false, true) => Remedy::MeasureAlone,
        (false, false) => Remedy::NameOtherCases,
    };
    match (at_best, value) {
        (Some((outcome, reason)), _) => row(outcome).because(reason),
        (None, Some(value)) if target.is_met_by(value) => row(Outcome::Pass),
        (None, Some(_)) => row(Outcome::TargetMissed),
        (None, None) if is_defined => row(Outcome::Inconclusive).because(Reason::NotMeasured).mended_by(remedy),
        (None, None) => row(Outcome::TargetMissed).because(Reason::NoSuchMetric).mended_by(remedy),
    }
}

/// Cases that a message names.
const MOST_NAMED: usize = 12;

/// Refuses a target that names none of `subjects`, before minutes are spent on measuring them.
pub fn ensure_targets_name(targets: &[Target], subjects: &[Subject]) -> Result<()> {
    for target in targets {
        ensure!(
            subjects.iter().any(|subject| target.names(subject)),
            "target '{target}' names no case of this run, which has {}; name one of them, or measure more --cases",
            first_of(&subjects.iter().map(Subject::to_string).collect::<Vec<_>>(), MOST_NAMED, ", ")
        );
    }
    Ok(())
}

/// One row per target and case it names.
///
/// # Errors
/// A target that names no case of the run, unless the run was cut short or broken before it got there.
pub(super) fn judge(head: &Receipt, targets: &[Target]) -> Result<Vec<VerdictRow>> {
    if !head.partial && head.invalid.is_empty() {
        let subjects: Vec<Subject> = head.cases.iter().map(|record| record.id.into()).collect();
        ensure_targets_name(targets, &subjects)?;
    }
    let mut rows = Vec::new();
    for target in targets {
        for record in head.cases.iter().filter(|record| target.names(&record.id.into())) {
            let at_best = match super::invalid(head, record) {
                _ if head.partial => Some((Outcome::Partial, Reason::CutShort)),
                Some(what) => Some((Outcome::Invalid, Reason::Broken { what })),
                None => None,
            };
            rows.push(row(target, record.id.into(), value(target.metric(), record), false, at_best));
        }
    }
    Ok(rows)
}

/// One row per target and case it names, by what was measured of head in its blocks. A target that names none is not met
/// either; see [`ensure_targets_name`] for refusing it beforehand. One of a share may name cases of other shares, and
/// criterion and divan benches have none of their metrics.
pub(super) fn judge_pair(receipt: &PairedReceipt, targets: &[Target]) -> Vec<VerdictRow> {
    let at_best = match receipt.invalid.first() {
        Some(what) => Some((Outcome::Invalid, Reason::Broken { what: what.clone() })),
        None if receipt.partial => Some((Outcome::Partial, Reason::CutShort)),
        None => None,
    };
    let (mut rows, is_of_benches) = (Vec::new(), receipt.head.engine.is_of_benches());
    for target in targets.iter().filter(|_| !is_of_benches) {
        let named = receipt.cases.iter().map(|case| case.id).filter(|case| target.names(&(*case).into()));
        let (before, metric) = (rows.len(), target.metric());
        rows.extend(named.map(|case| {
            let counted = receipt.head.counted.iter().find(|counted| counted.id == case);
            let (value, is_defined) = match (metric.is_counted(), is_defined(metric, case)) {
                (true, _) => (counted.and_then(|counted| count(metric, &counted.counters)), counted.is_none()),
                (false, true) => (paired_value(metric, case, receipt), true),
                (false, false) => (None, false),
            };
            row(target, case.into(), value, is_defined, at_best.clone())
        }));
        let is_share = receipt.share.is_some_and(|share| share.of > 1);
        if rows.len() == before && !is_share {
            rows.push(row(target, Subject::Model, None, false, at_best.clone()));
        }
    }
    rows
}

fn cv_percent(values: impl Iterator<Item = f64>) -> Option<f64> {
    Some(100.0 * coefficient_of_variation(&values.collect::<Vec<f64>>())?)
}

/// Milliseconds, or tokens a second.
fn in_its_unit(metric: Metric, value: f64) -> f64 {
    if metric.is_rate() { value } else { value / 1e6 }
}
