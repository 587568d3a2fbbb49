//! The two sides of a paired run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Base or head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// What is compared with.
    Base,
    /// What is judged.
    Head,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Base => Self::Head,
            Self::Head => Self::Base,
        }
    }

    /// `base` or `head`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Head => "head",
        }
    }
}
