//! What the doctor found, as `doctor --json` writes it.

use serde::Serialize;

use super::Machine;

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
    /// What each baseline of this machine class can see.
    pub sight: Vec<Sight>,
    /// What the paired channel can see, by this machine class's calibrations.
    pub paired: Vec<PairedSight>,
}

/// The smallest slowdown of one case that the paired channel calls in 19 of 20 runs.
#[derive(Debug, Clone, Serialize)]
pub struct PairedSight {
    /// The calibration's file.
    pub calibration: String,
    /// Case id.
    pub case: String,
    /// Standard deviation of a block's ln ratio; `null` below two blocks.
    pub std: Option<f64>,
    /// head / base that is called; `null` when no slowdown up to a doubling is.
    pub ratio: Option<f64>,
}

/// The smallest change of one case that the stored channel calls.
#[derive(Debug, Clone, Serialize)]
pub struct Sight {
    /// The baseline's file.
    pub baseline: String,
    /// Case id.
    pub case: String,
    /// Sessions of this case.
    pub sessions: usize,
    /// Days, in UTC, that they are of.
    pub days: usize,
    /// head / base above which it is called; `null` below the days it takes.
    pub ratio: Option<f64>,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
