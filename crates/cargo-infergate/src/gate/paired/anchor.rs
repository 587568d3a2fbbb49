//! Head against the anchor, an older revision in the same blocks.
//!
//! Ten merges of 1 % each pass against the revision before and are 10 % together. A sum of estimates would find them late and
//! wrongly; here the oldest one is measured again. The anchor's tests are a suite of their own, at the same levels and limits of
//! their own: that there is an anchor changes nothing for head against base.

use super::load;
use super::looks::{Series, outcomes};
use super::mean::at_least;
use super::series::series_of;
use super::verdict::series;
use crate::receipt::{BlockCase, PairedCase, PairedReceipt};
use infergate_core::case::Case;

/// The blocks of each timed case against the anchor, or base's times where base is the anchor, in suite order; none without an anchor.
pub fn anchor_series(receipt: &PairedReceipt) -> Vec<(Case, Series)> {
    let Some(anchor) = &receipt.anchor else { return Vec::new() };
    let of_case = |case: &PairedCase| {
        let blocks = receipt.blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case.id);
        let mean_limit = case.mean.map(|mean| at_least(mean.threshold, anchor.limit).ln());
        (
            case.id,
            series_of(
                case,
                anchor.limit.ln(),
                mean_limit,
                &blocks.map(|block| of_anchor(block, anchor.side.is_some())).collect::<Vec<_>>(),
            ),
        )
    };
    receipt.cases.iter().filter(|case| case.timed && anchor.has(case.id)).map(of_case).collect()
}

fn of_anchor(block: &BlockCase, apart: bool) -> (&[u64], &[u64]) {
    (if apart { &block.anchor_ns } else { &block.base_ns }, &block.head_ns)
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
