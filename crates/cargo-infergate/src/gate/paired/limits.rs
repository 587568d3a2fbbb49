//! The limits of a paired run: what was asked for, or what a case's noise allows. Whoever judges a receipt again, as the comment on
//! a pull request does, sets them anew, so that none rests on what the receipt says.

use infergate_core::case::select;

use super::mean::{block_mean_difference, mean_test};
use super::verdict::block_difference;
use crate::receipt::{BlockCase, BlockRecord, MeanTest, Metric, Note, PairedCase, PairedReceipt};
use infergate_core::case::Phase;
use infergate_core::stats::{mean, median, median_error, robust_std, sample_std};

/// The ratio from which on a slowdown fails where a case's blocks are quiet and nothing else was asked for.
pub const QUIET_THRESHOLD: f64 = 1.02;
const NOISY_THRESHOLD: f64 = 1.03;
/// Blocks that vary more than this get the wider threshold.
const QUIET_STD: f64 = 0.02;

/// After each so many blocks it is looked at what the blocks of a bench vary by.
const TELLING_BLOCKS: usize = 8;

/// The standard deviation of 8 normal values by that of the 7 nearest to their median (1.28); of more it is less.
const WITHOUT_FARTHEST: f64 = 1.3;

/// Blocks that vary by more than so many times what their pairs do have a spread of their own: equal builds and processes differ.
const SURELY_MORE: f64 = 1.5;

/// Of two sides that vary alike one is seen to vary by so many times what the other does in a twentieth of cases (8 blocks).
const SURELY_MORE_THAN_BASE: f64 = 2.0;

/// A limit of so many times what blocks vary by is decided within 20 blocks or so; of so many times their own spread it is, beside 13
/// builds of each side, 3.5 tau / sqrt(13), too, below which the luck of layouts is called a regression (`layouts.rs`). Both are simulated
/// in `tests/rules/gate_looks/wide.rs`.
const LIMIT_BY_SPREAD: f64 = 0.75;
const LIMIT_BY_OWN_SPREAD: f64 = 1.0;

/// What the limit of such a bench may become.
const WIDER_THRESHOLDS: [f64; 7] = [1.03, 1.05, 1.07, 1.10, 1.15, 1.20, 1.30];
const WIDEST_THRESHOLD: f64 = 1.50;

/// Ratios from which on a slowdown fails; `None`: by the noise of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Of the median.
    pub threshold: Option<f64>,
    /// Of the mean.
    pub mean_threshold: Option<f64>,
    /// Of the median against the anchor.
    pub anchor: f64,
    /// Under load, of the system time per token,
    pub throughput: f64,
    /// of a P90 of TTFT or ITL,
    pub latency: f64,
    /// and of the longest gap.
    pub gap: f64,
}

/// The ratio of a median from which on a slowdown fails: `asked`, or by what its blocks are expected to vary by.
pub fn median_threshold(asked: Option<f64>, expected_std: Option<f64>) -> f64 {
    let usual = if expected_std.is_some_and(|std| std > QUIET_STD) { NOISY_THRESHOLD } else { QUIET_THRESHOLD };
    asked.unwrap_or(usual)
}

/// The ratio of a case's median from which on a slowdown fails, once `blocks` were measured.
///
/// Some benches of few nanoseconds differ by 10 % from one build or process to the next, although nothing changed, and others vary by as
/// much from one iteration to the next. No number of blocks that a gate has tells a slowdown of 2 % from that. So where nobody asked for a
/// limit it is the smallest that this spread lets be decided.
pub fn threshold_in(case: &PairedCase, blocks: &[BlockRecord]) -> f64 {
    if !follows_noise(case) {
        return case.threshold;
    }
    let seen = telling(case, blocks);
    let Some(spread) = spread(seen.iter().filter_map(|block| block_difference(block))) else { return case.threshold };
    let of_pairs = |block: &&BlockCase| {
        let ratios = block.log_ratios()?;
        Some(median_error(robust_std(&ratios)?, ratios.len()))
    };
    let within = median(&seen.iter().filter_map(of_pairs).collect::<Vec<_>>()).unwrap_or(0.0);
    let own = if spread > SURELY_MORE * within { (spread.powi(2) - within.powi(2)).sqrt() } else { 0.0 };
    wider(case.threshold, (spread * LIMIT_BY_SPREAD).max(own * LIMIT_BY_OWN_SPREAD) * share_of_base(&seen, median))
}

/// What head varies by must not widen the limit that it is held to: where it varies by surely more than base, a difference of two
/// that vary like base would vary by so much of what is seen; else 1.
fn share_of_base(blocks: &[&BlockCase], number: fn(&[f64]) -> Option<f64>) -> f64 {
    let of_side = |times: fn(&BlockCase) -> &[u64]| {
        let number_ns = |block: &&BlockCase| number(&times(block).iter().map(|ns| *ns as f64).collect::<Vec<_>>());
        spread(blocks.iter().filter_map(number_ns).filter(|ns| *ns > 0.0).map(f64::ln))
    };
    match of_side(|block| &block.base_ns).zip(of_side(|block| &block.head_ns)) {
        Some((base, head)) if head > SURELY_MORE_THAN_BASE * base => {
            (2.0 * base.powi(2) / (base.powi(2) + head.powi(2))).sqrt()
        }
        _ => 1.0,
    }
}

/// The same before the first block, by what blocks are expected to vary by.
pub fn threshold_expected(case: &PairedCase) -> f64 {
    let expected = case.expected_std.filter(|_| follows_noise(case)).unwrap_or(0.0);
    wider(case.threshold, expected * LIMIT_BY_SPREAD)
}

/// The same of its mean, beside a median of this limit; `None` where there is no such test.
pub fn mean_threshold_in(case: &PairedCase, median_threshold: f64, blocks: &[BlockRecord]) -> Option<f64> {
    let MeanTest { threshold, expected_std } = case.mean?;
    let is_usual = threshold == mean_test(None, case.threshold, expected_std).threshold;
    if !(follows_noise(case) && is_usual) {
        return Some(threshold);
    }
    let beside = mean_test(None, median_threshold, expected_std).threshold;
    let seen = telling(case, blocks);
    let spread = spread(seen.iter().filter_map(|block| block_mean_difference(block)));
    Some(spread.map_or(beside, |spread| wider(beside, spread * LIMIT_BY_OWN_SPREAD * share_of_base(&seen, mean))))
}

fn follows_noise(case: &PairedCase) -> bool {
    case.threshold_by_noise && case.id.phase() == Phase::Bench && case.load.is_none()
}

/// As many of a case's blocks as were looked at; none before there are [`TELLING_BLOCKS`].
fn telling<'a>(case: &PairedCase, blocks: &'a [BlockRecord]) -> Vec<&'a BlockCase> {
    let mut seen: Vec<&BlockCase> =
        blocks.iter().flat_map(|block| &block.cases).filter(|block| block.id == case.id).collect();
    seen.truncate(seen.len() / TELLING_BLOCKS * TELLING_BLOCKS);
    seen
}

/// What blocks vary by, without the one that lies farthest off.
fn spread(differences: impl Iterator<Item = f64>) -> Option<f64> {
    let mut differences: Vec<f64> = differences.collect();
    let centre = median(&differences)?;
    differences.sort_by(|a, b| (a - centre).abs().total_cmp(&(b - centre).abs()));
    differences.pop();
    Some(sample_std(&differences)? * WITHOUT_FARTHEST)
}

/// `threshold`, or the smallest wider one whose logarithm is at least `wanted`.
fn wider(threshold: f64, wanted: f64) -> f64 {
    if wanted <= threshold.ln() {
        return threshold;
    }
    threshold.max(WIDER_THRESHOLDS.into_iter().find(|wider| wider.ln() >= wanted).unwrap_or(WIDEST_THRESHOLD))
}

impl Limits {
    /// That of a number under load.
    pub fn under_load(&self, metric: Metric) -> f64 {
        match metric {
            Metric::SystemToken => self.throughput,
            Metric::LongestGap => self.gap,
            _ => self.latency,
        }
    }

    /// The receipt with these limits in place of its own.
    #[must_use]
    pub fn set_in(&self, mut receipt: PairedReceipt) -> PairedReceipt {
        receipt.cases.iter_mut().for_each(|case| self.set_of(case));
        if let Some(anchor) = &mut receipt.anchor {
            anchor.limit = self.anchor;
        }
        receipt
    }

    fn set_of(&self, case: &mut PairedCase) {
        if let Some(load) = &case.load {
            case.threshold = self.under_load(load.metric);
            return;
        }
        case.threshold = median_threshold(self.threshold, case.expected_std);
        case.threshold_by_noise = self.threshold.is_none();
        // A receipt without the second test had none to fail.
        let expected_std = case.mean.and_then(|mean| mean.expected_std);
        case.mean = Some(mean_test(self.mean_threshold, case.threshold, expected_std));
    }
}

/// What the settings ask for and the receipt has not: a pattern of `cases` that names none of its cases, an anchor.
pub fn missing(receipt: &PairedReceipt, cases: &[String], anchor: Option<&str>) -> Vec<Note> {
    let known: Vec<_> = receipt.cases.iter().map(|case| case.id).collect();
    let is_there = |pattern: &str| {
        select(&[pattern.to_owned()], &known).is_ok_and(|found| found.iter().all(|case| known.contains(case)))
    };
    let absent: Vec<&str> = cases.iter().map(String::as_str).filter(|pattern| !is_there(pattern)).collect();
    let of_cases =
        (!absent.is_empty()).then(|| format!("the settings ask for cases that the run has not: {}", absent.join(", ")));
    let of_anchor = anchor.filter(|_| receipt.anchor.is_none());
    let of_anchor = of_anchor.map(|anchor| format!("the settings ask for the anchor {anchor}, and the run has none"));
    of_cases.into_iter().chain(of_anchor).map(Note::from).collect()
}
