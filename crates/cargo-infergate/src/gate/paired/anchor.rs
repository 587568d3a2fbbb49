//! Head against the anchor, an older revision in the same blocks.
//!
//! Ten merges of 1 % each pass against the revision before and are 10 % together. A sum of estimates would find them late and
//! wrongly; here the oldest one is measured again. The anchor's tests are a suite of their own, at the same levels and limits of
//! their own: that there is an anchor changes nothing for head against base.

use super::load;
use super::looks::{Series, outcomes};
use super::mean::anchor_mean_series;
use super::verdict::{block_difference, series};
use crate::receipt::{BlockCase, PairedCase, PairedReceipt};
use infergate_core::case::Case;
use infergate_core::stats::median;

/// d of one block: the median over its samples of ln(head / anchor); base's times where base is the anchor.
fn difference(receipt: &PairedReceipt, block: &BlockCase) -> Option<f64> {
    match receipt.anchor.as_ref()?.side {
        Some(_) => median(&block.anchor_log_ratios()?),
        None => block_difference(block),
    }
}

/// The blocks of each timed case against the anchor, in suite order; none without an anchor.
pub fn anchor_series(receipt: &PairedReceipt) -> Vec<(Case, Series)> {
    let Some(anchor) = &receipt.anchor else { return Vec::new() };
    let of_case = |case: &PairedCase| {
        let blocks = receipt.blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case.id);
        let differences = blocks.filter_map(|block| difference(receipt, block)).collect();
        let mean = anchor_mean_series(case, &receipt.blocks, anchor.limit, anchor.side.is_some());
        (case.id, Series { limit: anchor.limit.ln(), expected_std: case.expected_std, differences, mean })
    };
    receipt.cases.iter().filter(|case| case.timed).map(of_case).collect()
}

/// The cases that more blocks may settle: against base, or against the anchor. None once a load has shown that head is worse:
/// a block of it takes most of a minute.
pub fn open(receipt: &PairedReceipt) -> Vec<Case> {
    if load::is_decided(receipt) {
        return Vec::new();
    }
    let (base, anchor) = (series(&receipt.cases, &receipt.blocks), anchor_series(receipt));
    let elsewhere = receipt.cases_elsewhere();
    let (of_base, of_anchor) = (unsettled(base, elsewhere), unsettled(anchor, elsewhere));
    let timed = || receipt.cases.iter().filter(|case| case.timed).map(|case| case.id);
    let open: Vec<Case> = timed().filter(|id| of_base.contains(id) || of_anchor.contains(id)).collect();
    if open.is_empty() && load::is_pending(receipt) { timed().collect() } else { open }
}

fn unsettled(series: Vec<(Case, Series)>, elsewhere: usize) -> Vec<Case> {
    let (ids, suite): (Vec<Case>, Vec<Series>) = series.into_iter().unzip();
    ids.into_iter()
        .zip(outcomes(&suite, elsewhere))
        .filter(|(_, outcome)| outcome.is_none())
        .map(|(id, _)| id)
        .collect()
}
