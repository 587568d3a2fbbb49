//! Fixed prompts of exactly P tokens.

use anyhow::{Result, ensure};

use crate::engine::{Engine, TokenId};
use infergate_core::prompt::seeded_ids;

/// Refuses a text of the user's own where no tokenizer could cut prompts from it.
///
/// # Errors
/// An engine without a tokenizer, or one whose tokenizer fails.
pub fn ensure_reads(engine: &dyn Engine, own_text: Option<&str>) -> Result<()> {
    let reads = own_text.is_none() || engine.tokenize("a")?.is_some();
    ensure!(reads, "this model has no tokenizer to cut prompts from a text; leave --prompt out");
    Ok(())
}

/// The prompt of a case: `text`, repeated where it is too short, cut to exactly `tokens` tokens; seeded ids where the
/// model has no tokenizer.
///
/// The text is encoded once and its tokens are repeated, so the prompt of P tokens always starts the prompt of P + 1.
///
/// # Errors
/// When `tokens` is 0, when the text has no tokens, or when the tokenizer fails.
pub fn fixed_prompt(engine: &dyn Engine, text: &str, tokens: usize, seed: u64) -> Result<Vec<TokenId>> {
    ensure!(tokens > 0, "a prompt of zero tokens cannot be measured; give at least one");
    match engine.tokenize(text)? {
        Some(ids) => {
            ensure!(!ids.is_empty(), "the prompt text has no tokens; give a text with words in it");
            Ok(ids.into_iter().cycle().take(tokens).collect())
        }
        None => Ok(seeded_ids(tokens, seed, engine.info().vocab_tokens)),
    }
}
