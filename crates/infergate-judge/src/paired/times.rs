//! The rows of a case's times: its median and, for a second test, its mean.

use std::collections::HashSet;

use super::evidence::interval;
use super::load_counts;
use super::power::smallest_slowdown_of;
use super::series::{CaseState, MAX_BLOCKS, Series};
use infergate_core::case::Case;
use infergate_core::stats::{coefficient_of_variation, floats, hodges_lehmann, mean, median};
use infergate_receipts::{
    Against, BlockCase, BlockRecord, Evidence, Means, Metric, Outcome, PairedCase, PairedReceipt, Reason, Remedy,
    Statistic, TimeEvidence, VerdictRow, blocks_of,
};

/// The rows of one case. Given the number of `cases` of the suite, with the smallest slowdown that the run would have detected.
pub fn rows(
    receipt: &PairedReceipt,
    id: Case,
    series: &Series,
    state: &CaseState,
    cases: Option<usize>,
) -> Vec<VerdictRow> {
    let case = receipt.case(id);
    // A budget that ended this run would end the next one, too.
    let blocks = || if receipt.out_of_time { blocks_of_own_run(receipt, id).min(MAX_BLOCKS) } else { MAX_BLOCKS };
    let seen = &series.differences[..state.blocks.min(series.differences.len())];
    let smallest = || smallest_slowdown_of(series.limit, seen, blocks(), cases?);
    let median = TimeEvidence {
        smallest_slowdown: smallest(),
        throughput: case.and_then(|case| case.throughput),
        ..evidence(receipt, id, state, Statistic::Median)
    };
    let mut rows = vec![ended(receipt, id, median, state, series.limit)];
    if let (Some(means), Some(mean)) = (series.mean.as_deref(), state.mean.as_deref()) {
        let row = ended(receipt, id, evidence(receipt, id, mean, Statistic::Mean), mean, means.limit);
        rows.push(add_mean_reason(row, (series, state), (means, mean)));
    }
    rows
}

/// The number of blocks of the run that measured a case: in a merged receipt, bench targets and shards have their own blocks.
fn blocks_of_own_run(receipt: &PairedReceipt, id: Case) -> usize {
    let has = |block: &&BlockRecord| block.cases.iter().any(|case| case.id == id);
    let first = receipt.blocks.iter().find(has);
    let own: HashSet<Case> = first.into_iter().flat_map(|block| &block.cases).map(|case| case.id).collect();
    receipt.blocks.iter().filter(|block| block.cases.iter().any(|case| own.contains(&case.id))).count()
}

/// The row of a mean with the reason for its outcome, if its numbers do not show it.
fn add_mean_reason(
    row: VerdictRow,
    (medians, median): (&Series, &CaseState),
    (means, mean): (&Series, &CaseState),
) -> VerdictRow {
    let beyond = mean.log_ratio.zip(median.log_ratio).map(|(mean, median)| mean - median);
    match row.outcome {
        // A slowdown of all samples would move the median as much.
        Outcome::Regressed if beyond.is_some_and(|beyond| beyond >= means.limit - medians.limit) => {
            row.because(Reason::SomeSlower)
        }
        Outcome::Advisory if median.outcome == Some(Outcome::Regressed) => row.because(Reason::MedianRegressed),
        Outcome::Advisory => row.because(Reason::TooNoisy { blocks: mean.blocks }),
        _ => row,
    }
}

fn evidence(receipt: &PairedReceipt, id: Case, state: &CaseState, statistic: Statistic) -> TimeEvidence {
    let blocks: Vec<&BlockCase> = blocks_of(&receipt.blocks, id).take(state.blocks).collect();
    let case = receipt.case(id);
    let iterations = case.map_or(1, |case| case.iterations_per_sample).max(1) as f64;
    let of_processes = |times: fn(&BlockCase) -> &[u64], mean_ns: fn(&Means) -> f64| -> Vec<f64> {
        let of_block = |block: &&BlockCase| match statistic {
            Statistic::Mean => mean(&block.means_of_each_pair()?.iter().map(mean_ns).collect::<Vec<_>>()),
            Statistic::Median => median(&floats(times(block))),
        };
        blocks.iter().filter_map(of_block).map(|ns| ns / iterations).collect()
    };
    let base = of_processes(|block| &block.base_ns, |means| means.base_ns);
    let head = of_processes(|block| &block.head_ns, |means| means.head_ns);
    let (base_ns, ratio) = (middle_ns(&base), state.log_ratio.map(f64::exp));
    TimeEvidence {
        statistic,
        base_ns,
        head_ns: by_ratio(base_ns, ratio),
        cv: coefficient_of_variation(&head),
        ratio,
        interval: state.log_interval.and_then(interval),
        shown: state.shown,
        p_adjusted: state.p_adjusted,
        threshold: Some(state.limit.exp()),
        blocks: Some(state.blocks),
        ..TimeEvidence::new(case.map_or_else(|| Metric::gated(id), PairedCase::metric), Against::Base)
    }
}

/// The Hodges-Lehmann location of block times, nanoseconds, the same estimator as for the change: a median of means would hide the stalls
/// of a few blocks.
pub(super) fn middle_ns(of_blocks: &[f64]) -> Option<f64> {
    // Relative to the first block, so that equal times give exactly that time.
    let first = of_blocks.first()?;
    hodges_lehmann(&of_blocks.iter().map(|ns| (ns / first).ln()).collect::<Vec<_>>()).map(|ln| first * ln.exp())
}

/// Head's time is base's time times the measured ratio, because the ratio is the steadier number.
pub(super) fn by_ratio(base_ns: Option<f64>, ratio: Option<f64>) -> Option<f64> {
    base_ns.zip(ratio).map(|(base_ns, ratio)| base_ns * ratio)
}

fn ended(receipt: &PairedReceipt, id: Case, evidence: TimeEvidence, state: &CaseState, limit: f64) -> VerdictRow {
    let row = |outcome| VerdictRow::new(id, outcome, Evidence::Time(evidence));
    let more = MAX_BLOCKS.saturating_sub(state.blocks);
    match state.outcome {
        // The notes of the run tell once what is wrong with it.
        _ if !receipt.invalid.is_empty() => row(Outcome::Invalid),
        Some(Outcome::Layout) => {
            let (placements, of) = state.slower_at.unwrap_or_default();
            row(Outcome::Layout).because(Reason::SlowerAt { placements, of })
        }
        Some(Outcome::WithinLimit) if state.limit > limit => {
            row(Outcome::WithinLimit).because(Reason::TooNoisyFor { limit: limit.exp() })
        }
        Some(Outcome::Unstable) => row(Outcome::Unstable).because(Reason::TooNoisy { blocks: state.blocks }),
        Some(outcome) => row(outcome),
        None if receipt.partial => row(Outcome::Partial),
        None if receipt.out_of_time => {
            let reason = Reason::OutOfTime { blocks: state.blocks, more };
            row(Outcome::Inconclusive).because(reason).with_remedy(Remedy::MoreTime)
        }
        None if load_counts::is_decided(receipt) => {
            row(Outcome::Inconclusive).because(Reason::LoadDecided { blocks: state.blocks })
        }
        None => row(Outcome::Inconclusive).because(Reason::TooFewBlocks { blocks: state.blocks }),
    }
}
