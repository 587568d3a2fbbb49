//! One case of a paired run's suite: what it is judged by, and what both sides said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::LoadCase;
use super::{Metric, Output, Throughput};
use infergate_core::case::Case;

/// One case of the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedCase {
    /// Case id.
    #[schemars(with = "String")]
    pub id: Case,
    /// The ratio head / base from which on a slowdown fails, for example 1.02.
    pub threshold: f64,
    /// The ratio that has to be excluded where noise leaves the threshold undecided, for example 1.05; no more than the threshold: none.
    pub widest: f64,
    /// Pairs of samples in a block, chosen from the pilot.
    pub pairs: usize,
    /// Iterations in each sample, chosen from the pilot; more than one where a single iteration is shorter than a turn.
    pub iterations_per_sample: usize,
    /// Whether one more iteration goes before each sample and does not count, since the first one of a bench's closure takes longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm_up: bool,
    /// Whether one thread computes it: its processes then take turns on one core.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_core: bool,
    /// What base said.
    pub base_output: Output,
    /// What head said. Where it is not the same, the case was not timed unless that was allowed.
    pub head_output: Output,
    /// Whether time was taken of this case.
    pub timed: bool,
    /// Standard deviation expected of a block's ln ratio before the first block was measured, from a calibration of this
    /// machine class or from the pilot; `null` where there was neither.
    #[serde(default)]
    pub expected_std: Option<f64>,
    /// The test of its means; `null` under load, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<MeanTest>,
    /// What an iteration of head gets through, where a criterion bench says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// What it is where it is measured in windows of load; its samples are then one number of each window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadCase>,
}

impl PairedCase {
    /// What is timed of it.
    pub fn metric(&self) -> Metric {
        self.load.as_ref().map_or_else(|| Metric::gated(self.id), |load| load.metric)
    }
}

/// The second test of a case: by the means of its blocks, which a stall of few samples moves and their medians do not show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanTest {
    /// The ratio of the means from which on a slowdown fails, for example 1.05.
    pub threshold: f64,
    /// Standard deviation expected of a block's ln ratio of means before the first block was measured; `null` where it was not
    /// known.
    pub expected_std: Option<f64>,
}
