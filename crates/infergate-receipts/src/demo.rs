//! What the demo found, as `demo --json` writes it.

use serde::Serialize;

use super::Outcome;

/// Schema name of a [`Demo`].
pub const DEMO_SCHEMA: &str = "infergate.demo/1";

/// Changes to a tiny engine whose effect is known, and what the gate said of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Demo {
    /// [`DEMO_SCHEMA`].
    pub schema: &'static str,
    /// Each change got the verdict it should.
    pub all_right: bool,
    /// The changes.
    pub changes: Vec<DemoChange>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoChange {
    /// What was changed.
    pub change: &'static str,
    /// What the gate has to name.
    pub expected: Outcome,
    /// The outcome it named, and the gate's verdict where it named none; `null` where it gave no verdict at all.
    pub found: Option<Outcome>,
    /// Exit code of the gate; `null` where a signal ended it.
    pub exit_code: Option<i32>,
}

impl DemoChange {
    /// Whether it came out right.
    pub fn is_right(&self) -> bool {
        self.found == Some(self.expected) && self.exit_code == Some(self.expected.exit_code())
    }
}
