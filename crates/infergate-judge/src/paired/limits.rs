//! The limits of a paired run: as they were set, or what a case's noise allows. Whoever judges a receipt again, as the comment on
//! a pull request does, sets them anew.

use anyhow::Result;

use super::mean::mean_test;
use infergate_core::case::{Phase, select};
use infergate_receipts::{Metric, Note, PairedCase, PairedReceipt, to_json};

/// The ratio from which on a slowdown fails, unless another one was set.
pub const THRESHOLD: f64 = 1.02;

/// The slowdown to exclude, as a ratio, if noise leaves the limit undecided: benches, engines.
const WIDEST_OF_BENCHES: f64 = 1.10;
const WIDEST: f64 = 1.05;

/// Under load, the ratio from which on a longest gap fails.
const GAP_LIMIT: f64 = 1.5;

/// Ratios from which on a slowdown fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Of the median.
    pub threshold: f64,
    /// Of the mean; `None`: by its noise.
    pub mean_threshold: Option<f64>,
    /// The slowdown to exclude if noise leaves the median undecided; `None`: the usual one.
    pub widest: Option<f64>,
    /// Under load, of the system time per token.
    pub throughput: f64,
    /// Under load, of a P90 of TTFT or ITL.
    pub latency: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threshold: THRESHOLD, mean_threshold: None, widest: None, throughput: 1.05, latency: 1.10 }
    }
}

impl Limits {
    /// The limit of a metric under load.
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

    /// The case with these limits in place of its own.
    pub fn set_of(&self, case: &mut PairedCase) {
        if let Some(load) = &case.load {
            (case.threshold, case.mean) = (self.under_load(load.metric), None);
            case.widest = case.threshold;
            return;
        }
        // A receipt without a test of means gets one, for unknown noise.
        self.set_limits_by_noise(case, case.expected_std, case.mean.and_then(|mean| mean.expected_std));
    }

    /// Sets the limits of a case that is not under load by the expected deviations of its medians and of its means.
    pub fn set_limits_by_noise(&self, case: &mut PairedCase, std: Option<f64>, mean_std: Option<f64>) {
        let usual = if case.id.phase() == Phase::Bench { WIDEST_OF_BENCHES } else { WIDEST };
        case.expected_std = std;
        case.threshold = self.threshold;
        case.widest = self.widest.unwrap_or(usual).max(self.threshold);
        case.mean = Some(mean_test(self.mean_threshold, self.threshold, mean_std));
    }
}

/// A note of the patterns in the settings' `cases` that name no case of the receipt.
pub fn missing_cases(receipt: &PairedReceipt, cases: &[String]) -> Option<Note> {
    let known: Vec<_> = receipt.cases.iter().map(|case| case.id).collect();
    let is_there = |pattern: &str| {
        select(&[pattern.to_owned()], &known).is_ok_and(|found| found.iter().all(|case| known.contains(case)))
    };
    let absent: Vec<&str> = cases.iter().map(String::as_str).filter(|pattern| !is_there(pattern)).collect();
    let text = || format!("the run lacks cases of the settings: {}", absent.join(", "));
    (!absent.is_empty()).then(|| Note::from(text()))
}

/// The receipt for an upload: if its JSON is longer than `most_bytes`, blocks keep their medians and no samples. The verdict
/// stays the same, except for targets on single tokens.
pub fn fit_to_upload(mut receipt: PairedReceipt, most_bytes: usize) -> Result<PairedReceipt> {
    if to_json(&receipt)?.len() > most_bytes {
        for block in
            receipt.blocks.iter_mut().filter(|block| block.windows.is_empty()).flat_map(|block| &mut block.cases)
        {
            *block = block.without_samples().unwrap_or_else(|| block.clone());
        }
    }
    Ok(receipt)
}
