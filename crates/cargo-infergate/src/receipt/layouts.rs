//! Builds of one side that differ in layout alone, and which of them a block started.

use std::collections::HashSet;

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BlockRecord;

/// SHA-256 of each build, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LayoutFiles {
    /// Base's.
    pub base: Vec<String>,
    /// Head's.
    pub head: Vec<String>,
    /// Of several runs read as one: builds of each side that the run with the fewest drew from, 0 where one drew none. Else `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewest: Option<usize>,
}

/// Places in the lists of [`LayoutFiles`], from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockLayouts {
    /// Base's build.
    pub base: usize,
    /// Head's build.
    pub head: usize,
}

impl LayoutFiles {
    /// Builds of each side that every case drew from, or more.
    pub fn of_a_side(&self) -> usize {
        self.fewest.unwrap_or_else(|| self.base.len().min(self.head.len()))
    }

    /// Builds of each side, of two sides that have none in common; `None` for others.
    pub fn of_each_side(&self) -> Option<usize> {
        let head: HashSet<&String> = self.head.iter().collect();
        let is_apart = self.base.iter().all(|hash| !head.contains(hash));
        is_apart.then(|| self.base.len().min(self.head.len()))
    }
}

/// Each block names builds that are listed.
pub(super) fn validate_layouts(files: Option<&LayoutFiles>, blocks: &[BlockRecord]) -> Result<()> {
    let listed = files.map_or([0; 2], |files| [files.base.len(), files.head.len()]);
    let is_listed = |drawn: &BlockLayouts| drawn.base < listed[0] && drawn.head < listed[1];
    ensure!(
        blocks.iter().filter_map(|block| block.layouts.as_ref()).all(is_listed),
        "a block names a layout that is not listed; measure again"
    );
    Ok(())
}
