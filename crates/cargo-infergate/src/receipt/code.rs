//! What differs between the machine code of base and that of head.

use anyhow::Result;
use infergate::receipt::limits::{MAX_CASES, at_most};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found before anything was timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeRecord {
    /// Both load the same code and constants, and read the same files, so nothing was timed.
    pub same: bool,
    /// At most so many functions are in one alone, or have other instructions or constants; `null` where that is not known.
    #[serde(default)]
    pub changed: Option<usize>,
    /// The names of some of them.
    #[serde(default)]
    pub named: Vec<String>,
}

impl CodeRecord {
    /// Nothing differs.
    pub fn same() -> Self {
        Self { same: true, changed: Some(0), named: Vec::new() }
    }

    pub(super) fn validate(&self) -> Result<()> {
        at_most(self.named.len(), MAX_CASES, "changed functions")
    }
}
