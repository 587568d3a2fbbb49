//! What a calibration says, as `calibrate --json` writes it.

use infergate_core::case::Case;
use serde::Serialize;

/// Schema name of a [`Summary`].
pub const SUMMARY_SCHEMA: &str = "infergate.calibration-summary/1";

/// How often something happened, with a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Share, 0 to 1.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Live gates of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LiveGates {
    /// Whole gates.
    pub gates: u64,
    /// Those that said something: every case is settled, or one regressed.
    pub settled: u64,
    /// Those that called any case regressed.
    pub regressed: u64,
    /// Those that passed (exit 0).
    pub passed: u64,
    /// Clopper-Pearson interval of the share regressed of those settled; `None` without such gates.
    pub regressed_share: Option<Share>,
    /// Clopper-Pearson interval of the share passed; `None` without gates.
    pub passed_share: Option<Share>,
    /// Median of the blocks a gate took.
    pub blocks: Option<f64>,
    /// Median of the timed work of a gate, seconds: the iterations themselves, without loading and warming.
    pub timed_seconds: Option<f64>,
    /// Median of the whole time of a gate's blocks, seconds; `None` where no gate says it.
    pub wall_seconds: Option<f64>,
}

/// Noise of one case's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// The case.
    pub case: Case,
    /// Blocks.
    pub blocks: usize,
    /// Sample standard deviation of a block's median ln ratio. `None` below two blocks.
    pub std: Option<f64>,
    /// The same of the ln ratio of means.
    pub mean_std: Option<f64>,
}

/// Everything a calibration says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: &'static str,
    /// The level by design, over the whole suite.
    pub design_level: f64,
    /// Gates of a file against itself, or against a copy with the same bytes.
    pub same_file: LiveGates,
    /// Gates between two builds of the same thing whose bytes differ.
    pub separate_builds: LiveGates,
    /// The smallest slowdown of each timed case, as a ratio, that a gate with this noise calls in 19 of 20 runs. `None` where none up to a
    /// doubling is.
    pub smallest_called: Vec<Option<f64>>,
    /// By case.
    pub noise: Vec<Noise>,
}
