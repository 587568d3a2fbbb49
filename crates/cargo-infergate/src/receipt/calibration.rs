//! The receipt of a calibration: how often the gate is wrong on this machine, and what it finds.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::layouts::{LayoutFiles, validate_layouts};
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
    /// Base and head are two files. Whether their bytes differ, the hashes say.
    pub separate_builds: bool,
    /// SHA-256 of base's worker; `null` where it was not noted.
    #[serde(default)]
    pub base_sha256: Option<String>,
    /// SHA-256 of head's worker.
    #[serde(default)]
    pub head_sha256: Option<String>,
    /// The builds that both sides drew from, block by block; `null` where each side had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<LayoutFiles>,
    /// The whole time of its blocks, nanoseconds.
    #[serde(default)]
    pub took_ns: Option<u64>,
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
    /// Whether its two sides are builds of different bytes. Two files whose hashes nobody noted are not: they may be copies.
    pub fn is_separate(&self) -> bool {
        !self.is_drawn()
            && self.base_sha256.is_some()
            && self.head_sha256.is_some()
            && self.base_sha256 != self.head_sha256
    }

    /// Whether its blocks drew from several layouts.
    pub fn is_drawn(&self) -> bool {
        self.layouts.is_some()
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
        self.gates.iter().flat_map(|gate| &gate.blocks).try_for_each(|block| validate_block(block, &known))?;
        self.gates.iter().try_for_each(|gate| validate_layouts(gate.layouts.as_ref(), &gate.blocks))
    }
}
