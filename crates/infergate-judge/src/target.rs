//! Absolute limits, judged by the measurements of head alone.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::time;
use infergate_core::case::{Case, Phase};
use infergate_core::printable::first_of;
use infergate_core::stats::{coefficient_of_variation, median};
use infergate_receipts::{
    BlockCase, CaseRecord, Counter, Evidence, LoadReceipt, LoadSessionLevel, Metric, Outcome, PairedReceipt,
    ProcessSamples, Reason, Receipt, Remedy, Subject, Target, TargetEvidence, TargetMetric, VerdictRow, blocks_of,
};

/// The value of `record`: the median over processes of each process's median, the variation of all samples, or the largest count
/// seen. `None` if the metric is undefined for the case or nothing was timed or counted.
pub fn value(metric: TargetMetric, record: &CaseRecord) -> Option<f64> {
    if metric.is_counted() { count(metric, &record.counters) } else { timed(metric, record.id, &record.processes) }
}

fn count(metric: TargetMetric, counters: &BTreeMap<String, Counter>) -> Option<f64> {
    counters.get(&metric.name()).map(|counter| counter.max as f64)
}

fn timed(metric: TargetMetric, case: Case, processes: &[ProcessSamples]) -> Option<f64> {
    if case.phase() == Phase::Bench || metric == TargetMetric::FailedPercent {
        return None;
    }
    let TargetMetric::Of(metric) = metric else {
        let all = processes.iter().flat_map(|process| values(Metric::gated(case), case, process));
        return Some(100.0 * coefficient_of_variation(&all.collect::<Vec<f64>>())?);
    };
    median(&time::process_medians(processes, |process| values(metric, case, process)))
}

/// Milliseconds, or tokens a second.
fn values(metric: Metric, case: Case, process: &ProcessSamples) -> Vec<f64> {
    let tokens = case.output_tokens();
    // A generation that was timed as a whole has no times of its tokens.
    let is_whole =
        case.phase() == Phase::Generate && tokens > 1 && process.samples_ns.iter().all(|sample| sample.len() == 1);
    let values = match metric {
        _ if !is_whole => process.values(metric, case.phase()),
        Metric::E2e => process.times_ns(),
        Metric::OutputThroughput => process.times_ns().iter().map(|ns| tokens as f64 * 1e9 / ns).collect(),
        _ => Vec::new(),
    };
    values.into_iter().map(|value| if metric.is_rate() { value } else { value / 1e6 }).collect()
}

/// Whether a case has the metric, which is not a counted one.
fn is_defined(metric: TargetMetric, case: Case) -> bool {
    let is_of_steps = matches!(metric, TargetMetric::Of(Metric::Itl | Metric::Tpot | Metric::DecodeSpeed));
    match case.phase() {
        _ if metric == TargetMetric::FailedPercent => false,
        Phase::Prefill => !is_of_steps,
        Phase::Decode => is_of_steps || metric == TargetMetric::CvPercent,
        Phase::Generate => case.output_tokens() > 1 || !is_of_steps,
        Phase::Bench => false,
    }
}

/// Head's samples in each block of a paired run.
fn processes(receipt: &PairedReceipt, case: Case) -> Vec<ProcessSamples> {
    let iterations = receipt.case(case).map_or(1, |known| known.iterations_per_sample.max(1));
    let of_block = |block: &BlockCase| match &block.head_tokens_ns {
        tokens_ns if tokens_ns.is_empty() => ProcessSamples {
            samples_ns: block.head_ns.iter().map(|ns| vec![*ns]).collect(),
            iterations_per_sample: iterations,
        },
        tokens_ns => ProcessSamples { samples_ns: tokens_ns.clone(), iterations_per_sample: 1 },
    };
    blocks_of(&receipt.blocks, case).map(of_block).collect()
}

/// One row; `at_best` is the outcome of a partial or invalid run. A missing value never passes: a metric that the subject does
/// not have (`is_defined`) is missed, one that was not measured is inconclusive.
fn row(
    target: &Target,
    subject: Subject,
    value: Option<f64>,
    is_defined: bool,
    at_best: Option<(Outcome, Reason)>,
) -> VerdictRow {
    let (metric, limit) = (target.metric, target.limit);
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
        (None, None) if is_defined => row(Outcome::Inconclusive).because(Reason::NotMeasured).with_remedy(remedy),
        (None, None) => row(Outcome::TargetMissed).because(Reason::NoSuchMetric).with_remedy(remedy),
    }
}

/// The most cases that a message names.
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
            rows.push(row(target, record.id.into(), value(target.metric, record), false, at_best));
        }
    }
    Ok(rows)
}

/// The outcome of a partial or invalid run; `None` for a sound one.
pub(super) fn at_best(invalid: &[String], partial: bool) -> Option<(Outcome, Reason)> {
    match invalid.first() {
        Some(what) => Some((Outcome::Invalid, Reason::Broken { what: what.clone() })),
        None if partial => Some((Outcome::Partial, Reason::CutShort)),
        None => None,
    }
}

/// One row per target and level of load that it names. A target that names none is missed.
pub(super) fn judge_load(head: &LoadReceipt, levels: &[&LoadSessionLevel], targets: &[Target]) -> Vec<VerdictRow> {
    let (at_best, summaries, mut rows) = (at_best(&head.invalid, head.partial), head.summaries(), Vec::new());
    for target in targets {
        let before = rows.len();
        for (level, summary) in levels.iter().zip(&summaries) {
            let subject = Subject::Load(level.name());
            if target.names(&subject) {
                let share = summary.failed_share().filter(|_| target.metric == TargetMetric::FailedPercent);
                rows.push(row(target, subject, share.map(|share| 100.0 * share), false, at_best.clone()));
            }
        }
        if rows.len() == before {
            rows.push(row(target, Subject::Model, None, false, at_best.clone()));
        }
    }
    rows
}

/// One row per target and case that it names, by head's times in its blocks. A target that names no case is missed; see
/// [`ensure_targets_name`] for refusing it beforehand. A shard's target may name cases of other shards. Criterion and divan benches
/// have no metric that a target can name.
pub(super) fn judge_pair(receipt: &PairedReceipt, targets: &[Target]) -> Vec<VerdictRow> {
    let at_best = at_best(&receipt.invalid, receipt.partial);
    let (mut rows, is_of_benches) = (Vec::new(), receipt.head.engine.is_of_benches());
    for target in targets.iter().filter(|_| !is_of_benches) {
        let named = receipt.cases.iter().map(|case| case.id).filter(|case| target.names(&(*case).into()));
        let (before, metric) = (rows.len(), target.metric);
        rows.extend(named.map(|case| {
            let counted = receipt.head.counted.iter().find(|counted| counted.id == case);
            let (value, is_defined) = match (metric.is_counted(), is_defined(metric, case)) {
                (true, _) => (counted.and_then(|counted| count(metric, &counted.counters)), counted.is_none()),
                (false, true) => (timed(metric, case, &processes(receipt, case)), true),
                (false, false) => (None, false),
            };
            row(target, case.into(), value, is_defined, at_best.clone())
        }));
        let is_shard = receipt.share.is_some_and(|shard| shard.of > 1);
        if rows.len() == before && !is_shard {
            rows.push(row(target, Subject::Model, None, false, at_best.clone()));
        }
    }
    rows
}
