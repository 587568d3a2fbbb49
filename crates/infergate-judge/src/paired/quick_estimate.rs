//! What a few blocks show: no verdict, but whether it is worth to look closer.

use super::series::series;
use infergate_core::case::Case;
use infergate_core::stats::{mean, student_interval};
use infergate_receipts::PairedReceipt;

/// Blocks of a quick look. Four would leave Student's t three degrees of freedom: with dozens of cases every interval would hold everything.
pub const QUICK_BLOCKS: usize = 6;

/// The chance that any of the intervals leaves out the truth, if blocks are normal.
const QUICK_LEVEL: f64 = 0.05;

/// The estimate of one case, as ratios head / base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuickEstimate {
    /// Which case.
    pub case: Case,
    /// The mean over blocks.
    pub ratio: f64,
    /// The interval around it: all cases' together hold the truth 95 times out of 100.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl QuickEstimate {
    /// Head is slower, whatever the limit.
    pub fn is_slower(&self) -> bool {
        self.low > 1.0
    }
}

/// All timed cases, by Student's t over blocks; without those that have fewer than two.
pub fn quick_estimates(receipt: &PairedReceipt) -> Vec<QuickEstimate> {
    let all = series(&receipt.cases, &receipt.blocks, false);
    let tests = all.len().max(1) as f64;
    let of_case = |(case, series): &(Case, super::Series)| {
        let (low, high) = student_interval(&series.differences, QUICK_LEVEL / tests / 2.0)?;
        let ratio = mean(&series.differences)?.exp();
        Some(QuickEstimate { case: *case, ratio, low: low.exp(), high: high.exp() })
    };
    all.iter().filter_map(of_case).collect()
}
