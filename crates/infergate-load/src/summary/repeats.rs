//! Whether a run sends a prompt more than once: then a server with a prefix cache answers from it. Pure.

use infergate_core::load::RequestRecord;

use crate::receipt::LoadReceipt;

/// A sentence where a level sends prompts of the dataset again.
pub fn warning(receipt: &LoadReceipt) -> Option<String> {
    let prompts = receipt.dataset_prompts?;
    let repeats = |record: &RequestRecord| record.request / receipt.targets.len() as u64 >= prompts;
    let is_short = receipt.levels.iter().flat_map(|level| &level.requests).any(repeats);
    is_short
        .then(|| format!("the dataset's {prompts} prompts repeat: a server with a prefix cache answers repeats faster"))
}
