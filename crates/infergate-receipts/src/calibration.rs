//! The receipt of a calibration: how often the gate is wrong on this machine, and what it finds.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::paired::{validate_blocks, validate_cases};
use super::{AlikeRecord, BlockRecord, Format, Machine, PairedCase, SideRecord};
use infergate_core::receipt::limits::MAX_CALIBRATED_CASES;

/// Schema name of a [`Calibration`].
pub const CALIBRATION_SCHEMA: &str = "infergate.calibration/1";

/// Gates between builds that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`CALIBRATION_SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339 in UTC.
    pub created: String,
    /// infergate's own version.
    pub tool: String,
    /// Where it ran.
    pub machine: Machine,
    /// Head of its gates.
    pub subject: SideRecord,
    /// Threads asked for.
    pub threads: usize,
    /// Seed of weights, prompts and orders.
    pub seed: u64,
    /// The suite, fixed before the first block.
    pub cases: Vec<PairedCase>,
    /// Live gates between builds that do the same.
    pub gates: Vec<CalibrationGate>,
}

/// One live gate between two builds that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationGate {
    /// SHA-256 of base's worker.
    pub base_sha256: String,
    /// SHA-256 of head's worker.
    pub head_sha256: String,
    /// How alike both were laid out, where they were.
    pub alike: Option<AlikeRecord>,
    /// The whole time of its blocks, nanoseconds.
    pub took_ns: u64,
    /// Its blocks.
    pub blocks: Vec<BlockRecord>,
}

impl CalibrationGate {
    /// Whether its two sides are builds of different bytes.
    pub fn is_separate(&self) -> bool {
        self.base_sha256 != self.head_sha256
    }
}

impl Format for Calibration {
    const SCHEMA: &'static str = CALIBRATION_SCHEMA;

    fn check(&self) -> Result<()> {
        ensure!(
            (1..=MAX_CALIBRATED_CASES).contains(&self.cases.len()),
            "there are no cases in it, or more than {MAX_CALIBRATED_CASES}; calibrate again"
        );
        let known = validate_cases(&self.cases)?;
        self.gates.iter().try_for_each(|gate| validate_blocks(&gate.blocks, &known))
    }
}
