//! The blocks of a case as its tests see them: of its medians and, for a second test, of its means.

use std::collections::BTreeMap;

use infergate_core::case::Case;
use infergate_core::stats::{log_ratio, mean, median};
use infergate_receipts::{BlockCase, BlockRecord, Outcome, PairedCase, Shown, blocks_of, log_ratios};

/// The most blocks of a case.
pub const MAX_BLOCKS: usize = 40;

/// The blocks of one case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// ln of the ratio from which on a slowdown fails: ln 1.02.
    pub limit: f64,
    /// ln of a wider ratio: a case whose blocks vary too much for `limit` passes if a slowdown by this is excluded. At or below
    /// `limit`: no wider limit.
    pub widest: f64,
    /// Standard deviation of a block, as it was expected before the first one.
    pub expected_std: Option<f64>,
    /// d of each block, in the order they were measured. It ends when the case is settled.
    pub differences: Vec<f64>,
    /// For each placement of what changed: the block's number, from 0, and d of its medians there. Empty if both sides were timed
    /// as they were linked.
    pub placements: Vec<Vec<(usize, f64)>>,
    /// The time budget is used up: no block follows.
    pub is_last: bool,
    /// The means of the same blocks, for a second test of this case. That series has no `mean`.
    pub mean: Option<Box<Self>>,
}

impl Series {
    /// Whether no block follows these.
    pub(super) fn has_ended(&self) -> bool {
        self.is_last || self.differences.len() >= MAX_BLOCKS
    }

    /// Whether no block follows the first `blocks`.
    pub(super) fn ends_with(&self, blocks: usize) -> bool {
        self.has_ended() && blocks == self.differences.len().min(MAX_BLOCKS)
    }
}

/// Where a case stands.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseState {
    /// The verdict; `None` while more blocks may change it.
    pub outcome: Option<Outcome>,
    /// Blocks the numbers below rest on.
    pub blocks: usize,
    /// ln of the ratio that decided it: the limit, or the wider one.
    pub limit: f64,
    /// If it is *layout*: the placements at which head is slower, and how many there are.
    pub slower_at: Option<(usize, usize)>,
    /// Hodges-Lehmann estimate of ln(head / base); `None` without blocks.
    pub log_ratio: Option<f64>,
    /// A 95 % interval of ln(head / base) that is valid at any look, includes the estimate and agrees with `shown`; `None` for
    /// fewer than 6 blocks.
    pub log_interval: Option<(f64, f64)>,
    /// Whether head was shown to be slower or faster at the suite's level, at whatever limit.
    pub shown: Option<Shown>,
    /// Adjusted p of "slower", or of "faster" if that was shown; valid at any look. `None` without blocks.
    pub p_adjusted: Option<f64>,
    /// The same for its means. They are *advisory* if the median failed before they were decided, or if they vary too much after
    /// the last block.
    pub mean: Option<Box<Self>>,
}

/// One value for each pair of processes of a block; `None` if a time is missing, 0 or not finite.
type PairDifferences = fn(&BlockCase) -> Option<Vec<f64>>;

/// The series of a case in these blocks; `is_last` if its time is used up.
fn series_of(case: &PairedCase, blocks: &[&BlockCase], is_last: bool) -> Series {
    let placements = at_placements(blocks);
    let series = |threshold: f64, expected_std, of_pairs: PairDifferences| {
        let limit = threshold.ln();
        Series {
            limit,
            // A mean's wider limit lies as far above its limit as the median's.
            widest: limit + (case.widest / case.threshold).ln().max(0.0),
            expected_std,
            differences: blocks.iter().filter_map(|block| mean(&of_pairs(block)?)).collect(),
            placements: placements.clone(),
            is_last,
            mean: None,
        }
    };
    let means = case.mean.map(|test| Box::new(series(test.threshold, test.expected_std, means)));
    Series { mean: means, ..series(case.threshold, case.expected_std, medians) }
}

/// For each pair of processes the median of ln(head / base) over its pairs of samples.
pub(super) fn medians(block: &BlockCase) -> Option<Vec<f64>> {
    block.of_each_pair().map(|(base, head)| median(&log_ratios(base, head)?)).collect()
}

/// For each pair of processes ln(mean of head / mean of base).
pub(super) fn means(block: &BlockCase) -> Option<Vec<f64>> {
    block.means_of_each_pair()?.iter().map(|means| log_ratio(means.base_ns, means.head_ns)).collect()
}

/// d at each placement, from blocks that visit several. If each block visits one, drawn, the placement is noise of the block.
fn at_placements(blocks: &[&BlockCase]) -> Vec<Vec<(usize, f64)>> {
    let mut found: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.placements.len() > 1) {
        for (placement, difference) in block.placements.iter().zip(medians(block).into_iter().flatten()) {
            found.entry(*placement).or_default().push((at, difference));
        }
    }
    found.into_values().collect()
}

/// d of one block: the median of ln(head / base) over pairs of samples, averaged over its pairs of processes. `None` if a time is
/// missing, 0 or not finite.
///
/// Bursts hit single iterations, and both sides of a pair alike only in part. Over the same blocks d varied by 1.9 % on decode
/// and 1.5 % on prefill, the ratio of medians by 2.6 and 2.2 %, of means by 3.7 and 2.3 %, of minima by 3.5 and 2.3 %.
pub fn block_difference(block: &BlockCase) -> Option<f64> {
    mean(&medians(block)?)
}

/// The blocks of each timed case of `cases`, in suite order; `is_last` if the time budget is used up.
pub fn series(cases: &[PairedCase], blocks: &[BlockRecord], is_last: bool) -> Vec<(Case, Series)> {
    let of_case =
        |case: &PairedCase| (case.id, series_of(case, &blocks_of(blocks, case.id).collect::<Vec<_>>(), is_last));
    cases.iter().filter(|case| case.timed).map(of_case).collect()
}
