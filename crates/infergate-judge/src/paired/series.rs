//! The blocks of a case as its test sees them: of its medians and, where that is a test of its own, of its means.

use std::collections::BTreeMap;

use super::looks::Series;
use infergate_core::stats::{log_ratio, mean, median};
use infergate_receipts::{BlockCase, PairedCase, log_ratios};

/// What each pair of processes of a block showed; `None` for times that are no times.
type OfPairs = fn(&BlockCase) -> Option<Vec<f64>>;

/// The series of a case in these blocks; `is_last` where its time is used up.
pub fn series_of(case: &PairedCase, blocks: &[&BlockCase], is_last: bool) -> Series {
    let placements = at_placements(blocks);
    let series = |threshold: f64, expected_std, of_pairs: OfPairs| {
        let limit = threshold.ln();
        Series {
            limit,
            // Where the median may be further off, so may the mean.
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

/// The median over its pairs of samples of ln(head / base).
pub(super) fn medians(block: &BlockCase) -> Option<Vec<f64>> {
    block.of_each_pair().map(|(base, head)| median(&log_ratios(base, head)?)).collect()
}

/// ln(mean of head / mean of base).
pub(super) fn means(block: &BlockCase) -> Option<Vec<f64>> {
    block.means_of_each_pair()?.iter().map(|means| log_ratio(means.base_ns, means.head_ns)).collect()
}

/// Of blocks that visit several placements. Where each visits one, drawn, a placement is noise of the block.
fn at_placements(blocks: &[&BlockCase]) -> Vec<Vec<(usize, f64)>> {
    let mut found: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.placements.len() > 1) {
        for (placement, difference) in block.placements.iter().zip(medians(block).into_iter().flatten()) {
            found.entry(*placement).or_default().push((at, difference));
        }
    }
    found.into_values().collect()
}
