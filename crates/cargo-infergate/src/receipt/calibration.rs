//! The receipt of a calibration: how often the gate is wrong on this machine, and what it finds.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::layouts::{LayoutFiles, validate_layouts};
use super::paired::{log_ratios, validate_block, validate_suite, validate_times};
use super::{BlockRecord, Machine, PairedCase, SideRecord};
use infergate_core::case::Case;
use infergate_core::receipt::limits::{MAX_BLOCKS, MAX_CALIBRATED_CASES, MAX_PROCESSES, MAX_SLOWDOWNS, at_most};

/// Schema name of a [`Calibration`].
pub const CALIBRATION_SCHEMA: &str = "infergate.calibration/1";

/// The largest slowdown that can be asked for: 1000 %.
const MAX_SLOWDOWN: f64 = 10.0;

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

    fn validate(&self) -> Result<()> {
        let id = self.id;
        at_most(self.slowed.len(), MAX_SLOWDOWNS, format_args!("slowdowns of {id}"))?;
        for slowed in &self.slowed {
            validate_times(id, &slowed.base_ns, &slowed.head_ns)?;
            ensure!(
                (0.0..=MAX_SLOWDOWN).contains(&slowed.slowdown),
                "{id}: a slowdown of {} is no fraction from 0 to {MAX_SLOWDOWN}; calibrate again",
                slowed.slowdown
            );
        }
        ensure!(
            self.slowed.iter().all(|slowed| self.log_ratios(slowed.slowdown).is_some()),
            "{id}: a time is zero, or the sides have different numbers of times; calibrate again"
        );
        Ok(())
    }
}

impl Calibration {
    /// Refuses one that says nothing.
    pub fn validate(&self) -> Result<()> {
        let known = validate_suite(&self.cases, |_| false)?;
        at_most(known.len(), MAX_CALIBRATED_CASES, "cases")?;
        ensure!(!known.is_empty() || self.partial, "there are no cases in it; calibrate again");
        self.subject.validate()?;
        at_most(self.gates.len(), MAX_BLOCKS, "gates")?;
        for gate in &self.gates {
            for hash in [&gate.base_sha256, &gate.head_sha256].into_iter().flatten() {
                let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
                ensure!(is_hash, "a worker's SHA-256 is not one; the file was edited");
            }
            at_most(gate.blocks.len(), MAX_BLOCKS, "blocks of a gate")?;
            for block in &gate.blocks {
                validate_block(block, &known)?;
            }
            validate_layouts(gate.layouts.as_ref(), &gate.blocks)?;
        }
        at_most(self.power.len(), MAX_PROCESSES, "blocks with slowed heads")?;
        for block in &self.power {
            at_most(block.cases.len(), known.len(), "cases of a block with slowed heads")?;
            for case in &block.cases {
                ensure!(known.contains(&case.id), "{}: is not in the suite; the file was edited", case.id);
                case.validate()?;
            }
        }
        at_most(self.slowdowns().len(), MAX_SLOWDOWNS, "slowdowns")
    }

    /// Every slowdown that was injected, the smallest first.
    fn slowdowns(&self) -> Vec<f64> {
        let cases = self.power.iter().flat_map(|block| &block.cases);
        let mut slowdowns: Vec<f64> = cases.flat_map(|case| &case.slowed).map(|slowed| slowed.slowdown).collect();
        slowdowns.sort_by(f64::total_cmp);
        slowdowns.dedup();
        slowdowns
    }
}
