//! What a bisection found, as `bisect --json` writes it.

use serde::Serialize;

use super::{Explained, VerdictRow};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
