//! Outputs of prompts whose length no case has: [`OtherLength`].

use anyhow::{Result, anyhow, ensure};
use infergate_core::case::{Case, Phase};
use infergate_core::receipt::limits::{MAX_PAIRED_CASES, at_most};
use infergate_core::receipt::validate::{validate_distinct, validate_exact};
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

/// Refuses lengths that are there twice, and outputs that are none of theirs.
pub(super) fn validate_other_lengths(lengths: &[OtherLength]) -> Result<()> {
    at_most(lengths.len(), MAX_PAIRED_CASES, "other prompt lengths")?;
    validate_distinct(lengths.iter().map(|length| length.id))?;
    for OtherLength { id, base_output, head_output } in lengths {
        ensure!(id.phase() == Phase::Prefill, "{id}: is no prompt length; the file was edited");
        for (side, output) in [("base", base_output), ("head", head_output)] {
            validate_exact(*id, output, &Default::default()).map_err(|error| anyhow!("{side}: {error:#}"))?;
        }
    }
    Ok(())
}
