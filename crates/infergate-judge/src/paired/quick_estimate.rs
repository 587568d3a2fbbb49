//! What a few blocks show: no verdict, but whether a full gate is worth its time.

use super::series::series;
use infergate_core::case::Case;
use infergate_core::stats::{mean, student_interval};
use infergate_receipts::PairedReceipt;

/// The number of blocks of a quick estimate. Four would leave Student's t three degrees of freedom: with dozens of cases no
/// interval would exclude anything.
pub const QUICK_BLOCKS: usize = 6;

/// The chance that any of the intervals misses its true value, if blocks are normal.
const QUICK_LEVEL: f64 = 0.05;

/// The estimate of one case, as ratios head / base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuickEstimate {
    /// Which case.
    pub case: Case,
    /// The mean over blocks.
    pub ratio: f64,
    /// The lower end of its interval: in 95 of 100 runs all cases' intervals hold the true values.
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
