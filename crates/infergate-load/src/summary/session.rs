//! A load run as a session of a baseline: its numbers without its requests.

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_core::metric::Metric;

use crate::receipt::load_baseline::{conditions, setup};
use crate::receipt::{LOAD_BASELINE_SCHEMA, LoadBaseline, LoadReceipt, LoadSession, LoadSessionLevel};
use crate::summary::{LevelSummary, by_start, summarise_target};

impl LoadReceipt {
    /// What becomes a level of a session: the index of each level, and of each target where there are several.
    pub fn parts(&self) -> impl Iterator<Item = (usize, Option<u32>)> {
        let targets = self.targets.len() as u32;
        let of = move |level| (0..targets).map(move |target| (level, (targets > 1).then_some(target)));
        (0..self.levels.len()).flat_map(of)
    }

    /// A summary of each level of the session that this run is.
    pub fn summaries(&self) -> Vec<LevelSummary> {
        self.parts().map(|(level, target)| summarise_target(&self.levels[level], target)).collect()
    }

    /// The requests behind each level of the session that this run is, in the order of their starts.
    pub fn requests_of_levels(&self) -> Vec<Vec<&RequestRecord>> {
        self.parts().map(|(level, target)| by_start(&self.levels[level], target)).collect()
    }
}

impl LoadBaseline {
    /// A baseline of one session.
    pub fn from_receipt(receipt: &LoadReceipt) -> Self {
        Self {
            schema: LOAD_BASELINE_SCHEMA.into(),
            machine: receipt.machine.clone(),
            setup: setup(receipt),
            sessions: vec![LoadSession::from(receipt)],
        }
    }

    /// Adds `receipt` as a session, at its place in time. With `step` its times are the first behind a step.
    pub fn add(&mut self, receipt: &LoadReceipt, step: bool) {
        let place = self.sessions.partition_point(|session| session.created <= receipt.created);
        if place == self.sessions.len() {
            self.machine = receipt.machine.clone();
        }
        self.sessions.insert(place, LoadSession { step, ..LoadSession::from(receipt) });
    }
}

impl From<&LoadReceipt> for LoadSession {
    fn from(receipt: &LoadReceipt) -> Self {
        let level = |((level, target), summary): ((usize, Option<u32>), LevelSummary)| {
            let level = &receipt.levels[level];
            let p50 = |metric| summary.values(metric).at(0.5);
            let wrong_length = summary.failures.get(&FailureClass::WrongLength).copied().unwrap_or(0);
            LoadSessionLevel {
                target: target.map_or("", |target| receipt.targets[target as usize].name()).into(),
                scenario: receipt.scenarios[level.scenario as usize].clone(),
                arrivals: level.arrivals,
                issued: summary.issued,
                failed: summary.failed() - wrong_length,
                wrong_length,
                measured: summary.measured as u64,
                ttft_p50_ns: p50(Metric::Ttft),
                itl_p50_ns: p50(Metric::Itl),
                e2e_p50_ns: p50(Metric::E2e),
                system_tokens_per_s: summary.system_tokens_per_s,
            }
        };
        Self {
            created: receipt.created.clone(),
            step: false,
            conditions: conditions(receipt),
            levels: receipt.parts().zip(receipt.summaries()).map(level).collect(),
        }
    }
}
