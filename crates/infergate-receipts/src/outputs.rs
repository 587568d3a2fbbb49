//! What commands write with `--json` beside verdicts: bisections, checkups and calibrations.

use infergate_core::case::Case;
use serde::Serialize;

use super::{Explained, Machine, VerdictRow};

/// Schema name of a [`Bisection`].
pub const BISECTION_SCHEMA: &str = "infergate.bisection/1";

/// A search for what made a case slower.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bisection {
    /// [`BISECTION_SCHEMA`].
    pub schema: &'static str,
    /// The case that was looked at.
    pub case: String,
    /// Among what: `commit`, or `version` of a dependency.
    pub searched: &'static str,
    /// How it ended.
    pub end: BisectionEnd,
    /// What was measured, each against the good one, in the order it was measured.
    pub steps: Vec<BisectionStep>,
    /// The first that is slower against the one before it, by the gate's own rules; `null` where none was found.
    pub confirmed: Option<BisectionStep>,
    /// Which functions take the time of the first that is slower, against the one before it; `null` where that was not looked for.
    pub explained: Option<Explained>,
}

/// How a bisection ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BisectionEnd {
    /// The first that is slower was found.
    First {
        /// Commit and subject, or dependency and version.
        name: String,
    },
    /// The first that is slower is one of several that could not be judged.
    OneOf {
        /// Commit and subject, or dependency and version, of each.
        names: Vec<String>,
    },
    /// One was the first that is slower than the good one, and was not shown to be slower than the one before it.
    Unconfirmed {
        /// Commit and subject, or dependency and version.
        name: String,
    },
    /// The search was interrupted; the first that is slower is one of these.
    CutShort {
        /// Commit and subject, or dependency and version, of each.
        names: Vec<String>,
    },
    /// The bad one was not shown to be slower than the good one.
    NotSlower,
    /// The bad one could not be judged.
    NotJudged {
        /// Why.
        why: String,
    },
}

/// One step of a bisection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectionStep {
    /// Commit and subject, or dependency and version.
    pub name: String,
    /// How it compares; `null` where it was skipped.
    pub row: Option<VerdictRow>,
    /// Why it was skipped; `null` where it was not.
    pub skipped: Option<String>,
}

/// Schema name of a [`Checkup`].
pub const CHECKUP_SCHEMA: &str = "infergate.checkup/1";

/// What the doctor found.
#[derive(Debug, Clone, Serialize)]
pub struct Checkup {
    /// [`CHECKUP_SCHEMA`].
    pub schema: &'static str,
    /// The machine.
    pub machine: Machine,
    /// What was looked at.
    pub findings: Vec<Finding>,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What was looked at, for example `frequency governor`.
    pub subject: String,
    /// What was found, or that it is not readable here.
    pub found: String,
    /// What to do, or what it means for a measurement.
    pub advice: Option<String>,
    /// It makes times of identical builds differ.
    pub noisy: bool,
}

impl Finding {
    /// What a finding says when the operating system does not tell.
    pub const NOT_READABLE: &str = "not readable here";

    /// Nothing to do.
    pub fn quiet(subject: &str, found: impl Into<String>) -> Self {
        Self { subject: subject.to_owned(), found: found.into(), advice: None, noisy: false }
    }

    /// Something that makes times noisy, and what to do about it.
    pub fn noisy(subject: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { noisy: true, ..Self::quiet(subject, found).with_advice(advice) }
    }

    /// Not told here.
    pub fn unknown(subject: &str) -> Self {
        Self::quiet(subject, Self::NOT_READABLE)
    }

    /// The same with advice.
    pub fn with_advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

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
