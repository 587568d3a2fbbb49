//! Which share of a suite a run measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of several runs that measure a suite together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShareRecord {
    /// Which one, from 1.
    pub number: usize,
    /// So many there are.
    pub of: usize,
    /// The cases of all of them that are timed.
    pub suite_cases: usize,
}
