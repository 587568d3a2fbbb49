//! perfgate's paired rule over the same blocks.

use cargo_infergate::gate::paired::MAX_BLOCKS;
use cargo_infergate::receipt::{BlockCase, Share};
use infergate_core::stats::{mean, median};

use crate::blocks::Blocks;
use crate::{SEED, floats};

/// What perfgate takes for a pair.
#[derive(Clone, Copy)]
pub enum Pair {
    Block,
    Iteration,
}

/// (base, head) of each pair in a block, relative to base's times in it.
fn pairs(block: &BlockCase, pair: Pair) -> Vec<(f64, f64)> {
    let (base, head) = (floats(&block.base_ns), floats(&block.head_ns));
    match (pair, mean(&base), mean(&head), median(&base)) {
        (Pair::Block, Some(base), Some(head), _) => vec![(1.0, head / base)],
        (Pair::Iteration, _, _, Some(unit)) => base.iter().zip(&head).map(|(b, h)| (b / unit, h / unit)).collect(),
        _ => Vec::new(),
    }
}

/// perfgate's change, the mean difference as a fraction of base's median, where it counts as significantly above zero.
fn perfgate_slower(pairs: &[(f64, f64)]) -> Option<f64> {
    let differences: Vec<f64> = pairs.iter().map(|(base, head)| head - base).collect();
    let (n, difference) = (pairs.len() as f64, mean(&differences)?);
    let variance = differences.iter().map(|d| (d - difference).powi(2)).sum::<f64>() / n;
    let errors = if pairs.len() >= 30 { 1.96 } else { 2.0 };
    let base: Vec<f64> = pairs.iter().map(|(base, _)| *base).collect();
    (difference > errors * (variance / n).sqrt()).then_some(difference / median(&base)?)
}

/// Share of suites in which any case is called; `limit` is perfgate's, or for each case this gate's own. Blocks and
/// their number are drawn apart, so that where this gate stopped selects nothing.
pub fn perfgate_share(blocks: &Blocks, pair: Pair, limit: Option<f64>) -> Option<Share> {
    let limits: Vec<f64> = blocks.limits.iter().map(|own| limit.unwrap_or(own.ratio - 1.0)).collect();
    let pool: Vec<Vec<Vec<(f64, f64)>>> =
        blocks.rows.iter().map(|row| row.iter().map(|block| pairs(block, pair)).collect()).collect();
    let mut random = fastrand::Rng::with_seed(SEED + 1);
    blocks.share(|rows, suites| {
        let called = (0..suites).filter(|_| {
            let taken = &blocks.taken[random.usize(..blocks.taken.len())];
            let drawn: Vec<usize> = (0..MAX_BLOCKS).map(|_| rows[random.usize(..rows.len())]).collect();
            limits.iter().enumerate().any(|(case, limit)| {
                let pairs: Vec<_> = drawn[..taken[case]].iter().flat_map(|&row| pool[row][case].clone()).collect();
                perfgate_slower(&pairs).is_some_and(|change| change > *limit)
            })
        });
        called.count() as f64 / suites as f64
    })
}
