//! What prompts are made of: a text, or seeded ids.

use crate::engine::TokenId;
use crate::splitmix;

/// A public-domain text: Lewis Carroll, *Alice's Adventures in Wonderland* (1865), chapter I.
pub const TEXT: &str = include_str!("../prompts/alice.txt");

/// `len` ids below `vocab_tokens` from [`splitmix`], the same on every machine.
pub fn seeded_ids(len: usize, seed: u64, vocab_tokens: usize) -> Vec<TokenId> {
    let mut state = seed;
    let mut id = || splitmix::next(&mut state) % vocab_tokens.max(1) as u64;
    (0..len).map(|_| id() as TokenId).collect()
}
