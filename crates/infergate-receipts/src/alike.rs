//! Builds of both sides that were laid out alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was timed: each side linked once for each placement of what changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AlikeRecord {
    /// Functions of base that lie at the same address in head, with the same code.
    pub same: usize,
    /// Functions of base.
    pub functions: usize,
    /// SHA-256 of base's build for each placement, in hexadecimal digits.
    pub base: Vec<String>,
    /// The same of head's.
    pub head: Vec<String>,
}

impl AlikeRecord {
    /// Adds the builds of another bench target.
    pub fn extend(&mut self, other: Self) {
        self.same += other.same;
        self.functions += other.functions;
        self.base.extend(other.base);
        self.head.extend(other.head);
    }
}
