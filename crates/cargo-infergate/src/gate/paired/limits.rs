//! The limits of a paired run: what was asked for, or what a case's noise allows. Whoever judges a receipt again, as the comment on
//! a pull request does, sets them anew. What the receipt says can narrow a limit, and its blocks decide how far that of a bench follows them.

use anyhow::Result;

use super::looks::MAX_BLOCKS;
use super::mean::mean_test;
use super::series::Times;
use crate::receipt::{BlockCase, MeanTest, Metric, Note, PairedCase, PairedReceipt, Reduced, log_ratios, to_json};
use infergate_core::case::{Phase, select};
use infergate_core::stats::{log_ratio, mean, median, median_error, robust_std, sample_std, student_t_upper_tail};

/// The ratio from which on a slowdown fails where a case's blocks are quiet and nothing else was asked for.
const QUIET_THRESHOLD: f64 = 1.02;
const NOISY_THRESHOLD: f64 = 1.03;
/// Blocks that vary more than this get the wider threshold.
const QUIET_STD: f64 = 0.02;

/// After each so many blocks it is looked at what the blocks of a bench vary by.
pub const TELLING_BLOCKS: usize = 8;

/// The standard deviation of 8 normal values by that of the 7 nearest to their median (1.28); of more it is less.
const WITHOUT_FARTHEST: f64 = 1.3;

/// Blocks that vary by more than so many times what their pairs do have a spread of their own: equal builds and processes differ.
const SURELY_MORE: f64 = 1.5;

/// Of two sides that vary alike one is seldom seen to vary by so many times what the other does.
const SURELY_MORE_THAN_BASE: f64 = 2.5;

/// And the chance that it is seen of two that vary alike.
const SURE: f64 = 0.025;

/// No side has less of what both vary by.
const LEAST_SHARE: f64 = 0.02;

/// A limit of so many times what blocks vary by is decided within 20 blocks or so; of so many times their own spread it is, beside 13
/// builds of each side, above 3.5 tau / sqrt(13), too, below which the luck of layouts is called a regression (`layouts.rs`). Both are simulated
/// in `tests/rules/gate_looks/wide.rs`.
const LIMIT_BY_SPREAD: f64 = 0.75;
const LIMIT_BY_OWN_SPREAD: f64 = 1.2;

/// What the limit of such a bench may become.
const WIDER_THRESHOLDS: [f64; 6] = [1.03, 1.05, 1.07, 1.10, 1.15, 1.20];
const WIDEST_THRESHOLD: f64 = 1.30;

/// Under load, the ratio from which on a longest gap fails.
const GAP_LIMIT: f64 = 1.5;

/// Ratios from which on a slowdown fails; `None`: by the noise of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Of the median.
    pub threshold: Option<f64>,
    /// Of the mean.
    pub mean_threshold: Option<f64>,
    /// Under load, of the system time per token,
    pub throughput: f64,
    /// Under load, of a P90 of TTFT or ITL.
    pub latency: f64,
}

/// The ratio of a median from which on a slowdown fails: `asked`, or by what its blocks are expected to vary by.
pub fn median_threshold(asked: Option<f64>, expected_std: Option<f64>) -> f64 {
    let usual = if expected_std.is_some_and(|std| std > QUIET_STD) { NOISY_THRESHOLD } else { QUIET_THRESHOLD };
    asked.unwrap_or(usual)
}

/// What a limit follows of a block: the ln ratio of its medians or of its means, what its own pairs leave of error in it, and ln of each
/// side's median or mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    difference: f64,
    error: f64,
    base: f64,
    head: f64,
}

impl Seen {
    /// `None` for times that are no times.
    pub fn of_medians((base_ns, head_ns, reduced): &Times) -> Option<Self> {
        let ratios = log_ratios(base_ns, head_ns)?;
        let error = match reduced {
            Some(reduced) => reduced.error,
            None => median_error(robust_std(&ratios)?, ratios.len()),
        };
        let of_side = |times: &[u64]| median(&times.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
        Some(Self { difference: median(&ratios)?, error, base: of_side(base_ns)?.ln(), head: of_side(head_ns)?.ln() })
    }

    /// Likewise.
    pub fn of_means((base_ns, head_ns, reduced): &Times) -> Option<Self> {
        let of_side = |times: &[u64]| mean(&times.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
        let (base, head) = match reduced {
            Some(reduced) => (reduced.base_mean_ns, reduced.head_mean_ns),
            None => (of_side(base_ns)?, of_side(head_ns)?),
        };
        let difference = log_ratio(base, head)?;
        Some(Self { difference, error: 0.0, base: base.ln(), head: head.ln() })
    }

    pub fn difference(&self) -> f64 {
        self.difference
    }

    /// One pair of medians, and what is left of the samples beside it.
    pub fn reduced(block: &BlockCase) -> Option<BlockCase> {
        let times = (&block.base_ns[..], &block.head_ns[..], block.reduced);
        let (medians, means) = (Self::of_medians(&times)?, Self::of_means(&times)?);
        let base_ns = medians.base.exp();
        let reduced = Reduced { error: medians.error, base_mean_ns: means.base.exp(), head_mean_ns: means.head.exp() };
        let pair = [base_ns, base_ns * medians.difference.exp()].map(|ns| vec![ns.round().max(1.0) as u64]);
        let [base_ns, head_ns] = pair;
        Some(BlockCase { reduced: Some(reduced), ..BlockCase::new(block.id, base_ns, head_ns) })
    }
}

/// ln of the limit of a case's median after each [`TELLING_BLOCKS`] blocks, by the blocks until then.
///
/// Some benches of few nanoseconds differ by 10 % from one build or process to the next, although nothing changed, and others vary by as
/// much from one iteration to the next. No number of blocks that a gate has tells a slowdown of 2 % from that. So where nobody asked for a
/// limit it is the smallest that this spread lets be decided. It rests on blocks before the look alone: what an earlier look decided stays.
pub(super) fn wider_limits(limit: f64, blocks: &[Seen]) -> Vec<f64> {
    after_each(blocks, |seen| {
        let spread = spread(seen.iter().map(|block| block.difference)).unwrap_or(0.0);
        let error = median(&seen.iter().map(|block| block.error).collect::<Vec<_>>()).unwrap_or(0.0);
        let own = if spread > SURELY_MORE * error { (spread.powi(2) - error.powi(2)).sqrt() } else { 0.0 };
        wider(limit, (spread * LIMIT_BY_SPREAD).max(own * LIMIT_BY_OWN_SPREAD) * share_of_base(seen))
    })
}

/// The same of its mean, beside a median whose limit was the first of `beside` and became the others.
pub(super) fn wider_mean_limits(limit: f64, beside: (f64, &[f64]), blocks: &[Seen]) -> Vec<f64> {
    let (median_limit, medians) = beside;
    let by_means = after_each(blocks, |seen| {
        let spread = spread(seen.iter().map(|block| block.difference)).unwrap_or(0.0);
        wider(limit, spread * LIMIT_BY_OWN_SPREAD * share_of_base(seen))
    });
    // A slowdown of all samples alike that the median lets pass is no stall.
    by_means.into_iter().zip(medians).map(|(mean, median)| mean.max(limit + (median - median_limit).max(0.0))).collect()
}

/// The limit that a row of `blocks` blocks is judged by.
pub fn limit_after(limit: f64, wider: &[f64], blocks: usize) -> f64 {
    let looked = (blocks / TELLING_BLOCKS).min(wider.len());
    if looked == 0 { limit } else { wider[looked - 1] }
}

fn after_each(blocks: &[Seen], limit: impl Fn(&[Seen]) -> f64) -> Vec<f64> {
    let blocks = &blocks[..blocks.len().min(MAX_BLOCKS)];
    (1..=blocks.len() / TELLING_BLOCKS).map(|looks| limit(&blocks[..looks * TELLING_BLOCKS])).collect()
}

/// What head varies by must not widen the limit that it is held to: where it varies by surely more than base, a difference of two
/// that vary like base would vary by so much of what is seen; else 1. What moves both sides from block to block is taken out.
fn share_of_base(blocks: &[Seen]) -> f64 {
    let variance = |of: fn(&Seen) -> f64| spread(blocks.iter().map(of)).map_or(0.0, |std| std.powi(2));
    let both = variance(|block| block.head - block.base);
    let more = variance(|block| block.head) - variance(|block| block.base);
    let (base, head) = ((both - more) / 2.0, f64::midpoint(both, more));
    let base = base.max(both * LEAST_SHARE);
    let is_more = head > SURELY_MORE_THAN_BASE.powi(2) * base && varies_more(blocks);
    if is_more { (2.0 * base / both).sqrt() } else { 1.0 }
}

/// Whether head surely varies by more than base, however much moves both from block to block: only then does the difference of the two
/// go with their sum (Pitman 1939, Morgan 1939). Without the block that lies farthest off.
fn varies_more(blocks: &[Seen]) -> bool {
    let centre = median(&blocks.iter().map(|block| block.difference).collect::<Vec<_>>()).unwrap_or(0.0);
    let mut blocks = blocks.to_vec();
    blocks.sort_by(|a, b| (a.difference - centre).abs().total_cmp(&(b.difference - centre).abs()));
    blocks.pop();
    let std = |of: fn(&Seen) -> f64| sample_std(&blocks.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
    // The covariance of sum and difference.
    let more = std(|block| block.head).powi(2) - std(|block| block.base).powi(2);
    let correlation = more / (std(|block| block.head + block.base) * std(|block| block.head - block.base));
    let freedom = blocks.len() as f64 - 2.0;
    let t = correlation * (freedom / (1.0 - correlation.powi(2)).max(0.0)).sqrt();
    student_t_upper_tail(t, freedom).is_some_and(|p| p < SURE)
}

/// Whether the limit of a case follows what its blocks vary by: that of a bench for which none was asked.
pub(super) fn follows_noise(case: &PairedCase) -> bool {
    case.threshold_by_noise && case.id.phase() == Phase::Bench && case.load.is_none()
}

/// What blocks vary by, without the one that lies farthest off.
fn spread(differences: impl Iterator<Item = f64>) -> Option<f64> {
    let mut differences: Vec<f64> = differences.collect();
    let centre = median(&differences)?;
    differences.sort_by(|a, b| (a - centre).abs().total_cmp(&(b - centre).abs()));
    differences.pop();
    Some(sample_std(&differences)? * WITHOUT_FARTHEST)
}

/// `limit`, or the smallest wider one that is at least `wanted`; all as logarithms.
fn wider(limit: f64, wanted: f64) -> f64 {
    if wanted <= limit {
        return limit;
    }
    limit.max(WIDER_THRESHOLDS.into_iter().map(f64::ln).find(|wider| *wider >= wanted).unwrap_or(WIDEST_THRESHOLD.ln()))
}

/// The ratio that a case's limit is expected to be, by what blocks are expected to vary by.
pub fn threshold_expected(case: &PairedCase) -> f64 {
    let expected = case.expected_std.filter(|_| follows_noise(case)).unwrap_or(0.0);
    wider(case.threshold.ln(), expected * LIMIT_BY_SPREAD).exp()
}

impl Limits {
    /// That of a number under load.
    pub fn under_load(&self, metric: Metric) -> f64 {
        match metric {
            Metric::SystemToken => self.throughput,
            Metric::LongestGap => GAP_LIMIT,
            _ => self.latency,
        }
    }

    /// The receipt with these limits in place of its own.
    #[must_use]
    pub fn set_in(&self, mut receipt: PairedReceipt) -> PairedReceipt {
        receipt.cases.iter_mut().for_each(|case| self.set_of(case));
        receipt
    }

    fn set_of(&self, case: &mut PairedCase) {
        if let Some(load) = &case.load {
            (case.threshold, case.mean) = (self.under_load(load.metric), None);
            return;
        }
        case.threshold = median_threshold(self.threshold, case.expected_std);
        // A receipt can only say that its limit was asked for.
        case.threshold_by_noise &= self.threshold.is_none();
        // A receipt without the second test had none to fail.
        let (expected_std, by_noise) = case.mean.map_or((None, false), |mean| (mean.expected_std, mean.by_noise));
        let test = mean_test(self.mean_threshold, case.threshold, expected_std);
        case.mean = Some(MeanTest { by_noise: test.by_noise && by_noise, ..test });
    }
}

/// The patterns of the settings' `cases` that name none of the receipt's.
pub fn missing(receipt: &PairedReceipt, cases: &[String]) -> Option<Note> {
    let known: Vec<_> = receipt.cases.iter().map(|case| case.id).collect();
    let is_there = |pattern: &str| {
        select(&[pattern.to_owned()], &known).is_ok_and(|found| found.iter().all(|case| known.contains(case)))
    };
    let absent: Vec<&str> = cases.iter().map(String::as_str).filter(|pattern| !is_there(pattern)).collect();
    let text = || format!("the settings ask for cases that the run has not: {}", absent.join(", "));
    (!absent.is_empty()).then(|| Note::from(text()))
}

/// The receipt as it can be uploaded: where its JSON is longer than `most_bytes`, blocks keep their medians and no samples. It is judged
/// as before, but for targets on single tokens.
pub fn fit_to_upload(mut receipt: PairedReceipt, most_bytes: usize) -> Result<PairedReceipt> {
    if to_json(&receipt)?.len() > most_bytes {
        for block in
            receipt.blocks.iter_mut().filter(|block| block.windows.is_empty()).flat_map(|block| &mut block.cases)
        {
            *block = Seen::reduced(block).unwrap_or_else(|| block.clone());
        }
    }
    Ok(receipt)
}
