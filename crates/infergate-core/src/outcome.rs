//! The words a verdict is said in, and the exit code of each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::as_text::words;

/// One verdict, of a case or of the whole suite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything asked for holds.
    Pass,
    /// Memory grew, and no leak shows, as when a cache fills: a pass that says how much was kept.
    Plateau,
    /// Not timed: base and head are the same code, or the case runs nothing that changed.
    SameCode,
    /// Slower at some placements of the changed code only: where the linker put it is the cause.
    Layout,
    /// No slowdown at or above the threshold.
    WithinLimit,
    /// Faster, significantly and relevantly.
    Improved,
    /// Other numbers than before, within the tolerance for rounding.
    Drifted,
    /// Worse by no more than head declares as intended; a reviewer decides.
    Accepted,
    /// Shown, and not judged: too few sessions, another machine class.
    Advisory,
    /// Slower, significantly and relevantly.
    Regressed,
    /// Other tokens than before.
    OutputChanged,
    /// An exact counter is worse.
    CounterRegressed,
    /// Memory grows with the runs.
    Leak,
    /// An absolute limit is missed.
    TargetMissed,
    /// Too noisy to judge.
    Unstable,
    /// Neither shown nor excluded.
    Inconclusive,
    /// The run breaks an invariant.
    Invalid,
    /// The run was cut short.
    Partial,
    /// No comparable baseline where one is required.
    NotComparable,
    /// Bad usage, unreadable file, failed run.
    Failed,
}

impl Outcome {
    /// Whether more blocks, or a quieter machine, would have decided it.
    pub fn is_undecided(self) -> bool {
        matches!(self, Self::Unstable | Self::Inconclusive)
    }

    /// The process exit code.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Pass | Self::Plateau | Self::SameCode | Self::Layout => 0,
            Self::WithinLimit | Self::Improved | Self::Drifted | Self::Accepted | Self::Advisory => 0,
            Self::Regressed | Self::OutputChanged | Self::CounterRegressed | Self::Leak | Self::TargetMissed => 1,
            Self::Failed => 2,
            Self::Unstable | Self::Inconclusive | Self::Invalid | Self::Partial => 3,
            Self::NotComparable => 4,
        }
    }

    /// Rank in the order in which the worst case decides: exit codes 2, 1, 3, 4, 0.
    pub fn severity(self) -> u8 {
        match self.exit_code() {
            2 => 4,
            1 => 3,
            3 => 2,
            4 => 1,
            _ => 0,
        }
    }

    /// As a person reads it: `within limit`.
    pub fn words(self) -> String {
        words(self)
    }
}

/// The run breaks an invariant: it is invalid, with this reason, and gives no verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct InvariantBroken(pub String);

impl fmt::Display for InvariantBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvariantBroken {}
