//! A load run as a session of a baseline: its numbers without its requests.

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_core::metric::Metric;

use crate::receipt::load_baseline::{conditions, setup};
use crate::receipt::{
    LOAD_BASELINE_SCHEMA, LevelRecord, LoadBaseline, LoadReceipt, LoadSession, LoadSessionLevel, Scenario, TargetRecord,
};
use crate::summary::{LevelSummary, by_start, summarise_target};

impl LoadReceipt {
    /// A summary of each level of the session that this run is.
    pub fn summaries(&self) -> Vec<LevelSummary> {
        let summary =
            |(level, _, target, _): Part<'_>| summarise_target(level, (self.targets.len() > 1).then_some(target));
        parts(self).map(summary).collect()
    }

    /// The requests behind each level of the session that this run is, in the order of their starts.
    pub fn requests_of_levels(&self) -> Vec<Vec<&RequestRecord>> {
        parts(self).map(|(level, _, target, _)| by_start(level, Some(target))).collect()
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
        let level = |((level, scenario, _, target), summary): (Part<'_>, LevelSummary)| {
            let p50 = |metric| summary.values(metric).at(0.5);
            let wrong_length = summary.failures.get(&FailureClass::WrongLength).copied().unwrap_or(0);
            LoadSessionLevel {
                target: if receipt.targets.len() > 1 { target.name().into() } else { String::new() },
                scenario: scenario.clone(),
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
            levels: parts(receipt).zip(receipt.summaries()).map(level).collect(),
        }
    }
}

/// What becomes a level of a session: a level, its scenario, and a target with its number.
type Part<'a> = (&'a LevelRecord, &'a Scenario, u32, &'a TargetRecord);

/// Each of them.
fn parts(receipt: &LoadReceipt) -> impl Iterator<Item = Part<'_>> {
    let levels =
        receipt.levels.iter().filter_map(move |level| Some((level, receipt.scenarios.get(level.scenario as usize)?)));
    levels.flat_map(move |(level, scenario)| {
        (0..).zip(&receipt.targets).map(move |(index, target)| (level, scenario, index, target))
    })
}
