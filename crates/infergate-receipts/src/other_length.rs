//! Outputs of prompts whose length no case has: [`OtherLength`].

use infergate_core::case::Case;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Output;

/// What both sides say to a prompt that is not timed. A mask or a tail can be wrong at some lengths alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherLength {
    /// The prefill of so many tokens: `prefill/p37`.
    #[schemars(with = "String")]
    pub id: Case,
    /// What base said.
    pub base_output: Output,
    /// What head said.
    pub head_output: Output,
}
