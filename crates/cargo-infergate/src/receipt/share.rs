//! Which share of a suite a run measured.

use anyhow::{Result, ensure};
use infergate_core::receipt::limits::{MAX_BLOCKS, MAX_PAIRED_CASES, at_most};
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

impl ShareRecord {
    pub(super) fn validate(&self) -> Result<()> {
        let Self { number, of, suite_cases } = *self;
        let is_one = (1..=of).contains(&number) && of <= MAX_BLOCKS;
        ensure!(is_one, "it is share {number} of {of}, which is none; the file was edited");
        at_most(suite_cases, MAX_PAIRED_CASES, "cases of a suite")
    }
}
