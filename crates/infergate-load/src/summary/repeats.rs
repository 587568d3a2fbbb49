//! Whether a run sends a prompt more than once: then a server with a prefix cache answers from it. Pure.

use crate::receipt::LoadReceipt;

/// A sentence for each level that sends prompts of the dataset again.
pub fn warnings(receipt: &LoadReceipt) -> Vec<String> {
    let Some(prompts) = receipt.dataset_prompts else { return Vec::new() };
    let repeats = receipt.levels.iter().filter(|level| level.requests.iter().any(|record| record.request >= prompts));
    let warning = |level| {
        format!(
            "{}: the dataset's {prompts} prompts are fewer than the requests, and a prefix cache answers repeated ones faster; give \
             more prompts than requests",
            receipt.level_name(level)
        )
    };
    repeats.map(warning).collect()
}
