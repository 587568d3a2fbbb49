//! The receipt of a calibration: how often the gate is wrong on this machine, and what it finds.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::alike::AlikeRecord;
use super::paired::{log_ratios, validate_block};
use super::{BlockRecord, Format, Machine, PairedCase, SideRecord};
use infergate_core::case::Case;
use infergate_core::receipt::limits::MAX_CALIBRATED_CASES;

/// Schema name of a [`Calibration`].
pub const CALIBRATION_SCHEMA: &str = "infergate.calibration/1";

/// Gates between builds that do the same, and blocks whose head was slowed on purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`CALIBRATION_SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339 in UTC.
    pub created: String,
    /// It was cut short: what is here was measured.
    #[serde(default)]
    pub partial: bool,
    /// infergate's own version.
    pub tool: String,
    /// Where it ran.
    pub machine: Machine,
    /// What was measured against itself.
    pub subject: SideRecord,
    /// Threads asked for.
    pub threads: usize,
    /// Seed of weights, prompts and orders.
    pub seed: u64,
    /// The suite, fixed before the first block.
    pub cases: Vec<PairedCase>,
    /// Live gates between builds that do the same.
    pub gates: Vec<CalibrationGate>,
    /// Blocks with slowed heads.
    #[serde(default)]
    pub power: Vec<PowerBlock>,
    /// What it holds when it is whole; `null` where that was not noted.
    #[serde(default)]
    pub wanted: Option<Wanted>,
}

/// How much a calibration is to hold in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Gates.
    pub gates: usize,
    /// Slowed blocks.
    pub power_blocks: usize,
}

/// One live gate between two builds that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationGate {
    /// SHA-256 of base's worker.
    pub base_sha256: String,
    /// SHA-256 of head's worker.
    pub head_sha256: String,
    /// The builds that were timed where both were laid out alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<AlikeRecord>,
    /// The whole time of its blocks, nanoseconds.
    pub took_ns: u64,
    /// Its blocks.
    pub blocks: Vec<BlockRecord>,
}

/// One fresh process of each side; head is slowed by several factors in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerBlock {
    /// The cases.
    pub cases: Vec<PowerCase>,
}

/// One case in one such block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerCase {
    /// Case id.
    pub id: Case,
    /// One entry a slowdown.
    pub slowed: Vec<Stretched>,
}

/// Times under one injected slowdown; the i-th of head is paired with the i-th of base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stretched {
    /// Each timed step was stretched by this fraction of itself: 0.05 is 5 %.
    pub slowdown: f64,
    /// Base's times, nanoseconds; the same iteration may stand beside several slowdowns.
    pub base_ns: Vec<u64>,
    /// Head's times, nanoseconds.
    pub head_ns: Vec<u64>,
}

impl CalibrationGate {
    /// Whether its two sides are builds of different bytes.
    pub fn is_separate(&self) -> bool {
        self.base_sha256 != self.head_sha256
    }
}

impl PowerCase {
    /// ln(head / base) of each pair under `slowdown`. `None` where it was not measured, or a time is zero.
    pub fn log_ratios(&self, slowdown: f64) -> Option<Vec<f64>> {
        let slowed = self.slowed.iter().find(|slowed| slowed.slowdown == slowdown)?;
        log_ratios(&slowed.base_ns, &slowed.head_ns)
    }
}

impl Format for Calibration {
    const SCHEMA: &'static str = CALIBRATION_SCHEMA;

    fn check(&self) -> Result<()> {
        ensure!(
            !self.cases.is_empty() && self.cases.len() <= MAX_CALIBRATED_CASES || self.partial,
            "there are no cases in it, or more than {MAX_CALIBRATED_CASES}; calibrate again"
        );
        let known: BTreeSet<Case> = self.cases.iter().map(|case| case.id).collect();
        self.gates.iter().flat_map(|gate| &gate.blocks).try_for_each(|block| validate_block(block, &known))
    }
}
