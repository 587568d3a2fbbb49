//! Further metrics of a case, from the tokens of its generations: shown next to the metric that decides. A case stays one test of
//! the suite.

use infergate_core::case::{Case, Phase};

use super::evidence::{Bet, PASS_LEVEL, interval};
use super::series::Series;
use super::times::{by_ratio, middle_ns};
use infergate_core::stats::{hodges_lehmann, log_ratio, median};
use infergate_core::trace::Times;
use infergate_receipts::{
    Against, BlockCase, Evidence, Metric, Outcome, PairedReceipt, TimeEvidence, VerdictRow, blocks_of,
};

/// TTFT and ITL of a generation whose tokens were timed one by one, over its first `blocks` blocks. The blocks ended when the
/// case's `series` was settled, so the intervals are valid at any look.
pub(super) fn rows(receipt: &PairedReceipt, case: Case, series: &Series, blocks: usize) -> Vec<VerdictRow> {
    if case.phase() != Phase::Generate {
        return Vec::new();
    }
    let timed: Vec<&BlockCase> = blocks_of(&receipt.blocks, case).take(blocks).collect();
    let bet = Bet::new(series.limit, series.expected_std);
    [Metric::Ttft, Metric::Itl].into_iter().filter_map(|metric| row(case, metric, bet, &timed)).collect()
}

/// One metric; `None` if any block lacks its tokens.
fn row(case: Case, metric: Metric, bet: Bet, blocks: &[&BlockCase]) -> Option<VerdictRow> {
    let sides =
        |block: &&BlockCase| Some((values(metric, &block.base_tokens_ns)?, values(metric, &block.head_tokens_ns)?));
    let sides: Vec<(Vec<f64>, Vec<f64>)> = blocks.iter().map(sides).collect::<Option<_>>()?;
    let difference = |(base, head): &(Vec<f64>, Vec<f64>)| {
        let pairs = base.iter().zip(head).map(|(base, head)| log_ratio(*base, *head));
        median(&pairs.collect::<Option<Vec<f64>>>()?)
    };
    let differences: Vec<f64> = sides.iter().map(difference).collect::<Option<_>>()?;
    let estimate = hodges_lehmann(&differences)?;
    let least = 1.0 / PASS_LEVEL;
    let (low, high) = (bet.lower_bound(&differences, least), bet.upper_bound(&differences, least));
    let log_interval = low.zip(high).map(|(low, high)| (low.min(estimate), high.max(estimate)));
    let base_ns = middle_ns(&sides.iter().map(|(base, _)| median(base)).collect::<Option<Vec<f64>>>()?);
    let ratio = Some(estimate.exp());
    let evidence = TimeEvidence {
        counted: false,
        base_ns,
        head_ns: by_ratio(base_ns, ratio),
        ratio,
        interval: log_interval.and_then(interval),
        blocks: Some(differences.len()),
        ..TimeEvidence::new(metric, Against::Base)
    };
    Some(VerdictRow::new(case, Outcome::Advisory, Evidence::Time(evidence)))
}

/// The metric of each generation, nanoseconds: the time to its first token, or the median of its gaps. `None` without
/// generations, or if one is too short.
fn values(metric: Metric, tokens_ns: &[Vec<u64>]) -> Option<Vec<f64>> {
    let of_one = |tokens: &Vec<u64>| median(&metric.of(Times::of_tokens(tokens)));
    if tokens_ns.is_empty() { None } else { tokens_ns.iter().map(of_one).collect() }
}
