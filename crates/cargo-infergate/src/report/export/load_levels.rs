//! The levels of a load receipt as other programs see them: each is a run of theirs, each target of it another one.

use infergate_core::load::RequestRecord;

use crate::receipt::{LevelRecord, LoadReceipt, TargetRecord};
use infergate_core::stats::mean;
use infergate_load::summary::{LevelSummary, Window, counted_requests, steady_window, summarise, summarise_target};

pub struct Run<'a> {
    pub level: &'a LevelRecord,
    /// Its place among the receipt's levels, from 0.
    pub index: usize,
    pub target: &'a TargetRecord,
    pub target_index: u32,
    pub summary: LevelSummary,
    pub window: Window,
    /// The requests that are measured, failed ones included: what all numbers are of.
    pub requests: Vec<&'a RequestRecord>,
}

/// Every level and target that has a steady window.
pub fn runs(receipt: &LoadReceipt) -> Vec<Run<'_>> {
    let several = receipt.targets.len() > 1;
    let mut runs = Vec::new();
    for (index, level) in receipt.levels.iter().enumerate() {
        let Some(window) = steady_window(level) else { continue };
        for (target_index, target) in (0..).zip(&receipt.targets) {
            let requests = counted_requests(level, Some(target_index));
            let summary = if several { summarise_target(level, target_index) } else { summarise(level) };
            runs.push(Run { level, index, target, target_index, summary, window, requests });
        }
    }
    runs
}

impl Run<'_> {
    /// The name of its file: `stem.json` where it is the only one, else `stem-LEVEL.json`, from 1, and `stem-LEVEL-TARGET.json`
    /// where there are several targets.
    pub fn file_name(&self, stem: &str, receipt: &LoadReceipt) -> String {
        let (level, target) = (self.index + 1, self.target_index + 1);
        match (receipt.levels.len(), receipt.targets.len()) {
            (1, 1) => format!("{stem}.json"),
            (_, 1) => format!("{stem}-{level}.json"),
            _ => format!("{stem}-{level}-{target}.json"),
        }
    }

    pub fn seconds(&self) -> f64 {
        (self.window.to_ns - self.window.from_ns) as f64 / 1e9
    }

    /// Requests that completed, a second: of those that started in the window the share that completed.
    pub fn completed_per_s(&self) -> Option<f64> {
        let share = self.completed().count() as f64 / self.requests.len() as f64;
        self.summary.requests_per_s.map(|per_s| per_s * share).filter(|per_s| per_s.is_finite())
    }

    pub fn completed(&self) -> impl Iterator<Item = &RequestRecord> {
        self.requests.iter().copied().filter(|record| record.failure.is_none())
    }

    pub fn model(&self) -> &str {
        match self.target {
            TargetRecord::Endpoint { model, .. } => model,
            TargetRecord::Local { engine, .. } => &engine.model,
        }
    }
}

/// The standard deviation of all that there is, which is what NumPy's `std` gives; `None` below two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    Some((values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt())
}
