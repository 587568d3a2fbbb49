//! What prompts are made of: a text, or seeded ids.

use crate::engine::TokenId;

/// A public-domain text: Lewis Carroll, *Alice's Adventures in Wonderland* (1865), chapter I.
pub const TEXT: &str = include_str!("../prompts/alice.txt");

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
