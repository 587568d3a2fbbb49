//! Fixed prompts of exactly P tokens.

use anyhow::{Result, ensure};

use crate::engine::{Engine, TokenId};

/// A public-domain text: Lewis Carroll, *Alice's Adventures in Wonderland* (1865), chapter I.
pub const TEXT: &str = include_str!("../prompts/alice.txt");

/// The prompt of a case: `text`, repeated where it is too short, cut to exactly `tokens` tokens; seeded ids where the
/// model has no tokenizer.
///
/// The text is encoded once and its tokens are repeated, so the prompt of P tokens always starts the prompt of P + 1.
///
/// # Errors
/// When `tokens` is 0, when the text has no tokens, or when the tokenizer fails.
pub fn fixed_prompt(engine: &dyn Engine, text: &str, tokens: usize, seed: u64) -> Result<Vec<TokenId>> {
    ensure!(tokens > 0, "a prompt of zero tokens cannot be measured; ask for at least one");
    match engine.tokenize(text)? {
        Some(ids) => {
            ensure!(!ids.is_empty(), "the prompt text has no tokens; give a text with words in it");
            Ok(ids.into_iter().cycle().take(tokens).collect())
        }
        None => Ok(seeded_ids(tokens, seed, engine.info().vocab_tokens)),
    }
}

/// `len` ids below `vocab_tokens` from a fixed generator (SplitMix64, Steele et al. 2014), the same on every machine.
pub fn seeded_ids(len: usize, seed: u64, vocab_tokens: usize) -> Vec<TokenId> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..len).map(|_| u32::try_from(next() % vocab_tokens.max(1) as u64).unwrap_or(0)).collect()
}
