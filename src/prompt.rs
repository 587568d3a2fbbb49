//! Fixed prompts of exactly P tokens.

use anyhow::{Result, ensure};

use crate::engine::{Engine, TokenId};

/// A public-domain text (Charles Darwin, *The Voyage of the Beagle*, 1839) long enough for every case of the grid.
pub const TEXT: &str = include_str!("../prompts/beagle.txt");

/// The prompt of a case: the start of `text`, cut to exactly `tokens` tokens, or seeded ids where the model has no tokenizer.
///
/// # Errors
/// When the text is too short, which names the tokens it has.
pub fn fixed_prompt(engine: &dyn Engine, text: &str, tokens: usize, seed: u64) -> Result<Vec<TokenId>> {
    ensure!(tokens > 0, "a prompt of zero tokens cannot be measured; ask for at least one");
    match engine.tokenize(text)? {
        Some(mut ids) => {
            ensure!(
                ids.len() >= tokens,
                "the prompt text has {} tokens and {tokens} are asked for; use a longer text",
                ids.len()
            );
            ids.truncate(tokens);
            Ok(ids)
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
