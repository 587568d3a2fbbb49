//! The limits of a paired run: what was asked for, or what a case's noise allows. Whoever judges a receipt again, as the comment on
//! a pull request does, sets them anew, so that none rests on what the receipt says.

use infergate_core::case::select;

use super::mean::mean_test;
use crate::receipt::{Metric, Note, PairedCase, PairedReceipt};

/// The ratio from which on a slowdown fails where a case's blocks are quiet and nothing else was asked for.
pub const QUIET_THRESHOLD: f64 = 1.02;
const NOISY_THRESHOLD: f64 = 1.03;
/// Blocks that vary more than this get the wider threshold.
const QUIET_STD: f64 = 0.02;

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
