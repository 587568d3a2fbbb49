//! The older revision of a paired run: [`AnchorRecord`].

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use infergate_core::case::Case;
use infergate_core::receipt::limits::{MAX_PAIRED_CASES, at_most};

use super::paired::{BlockRecord, MAX_RATIO, SideRecord, validate_times};

/// The older revision that head is compared with beside base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnchorRecord {
    /// The ratio head / anchor from which on a slowdown fails, for example 1.05.
    pub limit: f64,
    /// What was measured; `null` where the anchor is base's own commit, whose times then count for both.
    pub side: Option<SideRecord>,
    /// Benches that it does not have, or that fail in it: they are compared with base alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub without: Vec<Case>,
}

impl AnchorRecord {
    /// Whether head's time of a case is compared with it.
    pub fn has(&self, case: Case) -> bool {
        !self.without.contains(&case)
    }

    pub(super) fn validate(&self, blocks: &[BlockRecord]) -> Result<()> {
        let limit = self.limit;
        ensure!(
            limit > 1.0 && limit <= MAX_RATIO,
            "its limit is {limit}, which is no ratio above 1 and up to {MAX_RATIO}"
        );
        at_most(self.without.len(), MAX_PAIRED_CASES, "benches that it does not have")?;
        let Some(side) = &self.side else { return Ok(()) };
        side.validate()?;
        for case in blocks.iter().flat_map(|block| &block.cases).filter(|case| self.has(case.id)) {
            validate_times(case.id, &case.anchor_ns, &case.head_ns)?;
            ensure!(
                case.anchor_log_ratios().is_some(),
                "{}: a time is zero, or there are not as many times as of head; measure again",
                case.id
            );
        }
        Ok(())
    }
}
