//! Prompts of about so many tokens, each unlike the others, so that no prefix cache is measured by accident.

use infergate_core::prompt::seeded_ids;
use infergate_core::splitmix::mixed;

/// Short common words: with the space before it each is one token of the usual vocabularies, so that a prompt of n words has
/// about n tokens. What it has exactly, the server's usage says. 128 of them, a power of two: every word is as likely.
const WORDS: &str = include_str!("words.txt");

/// The prompt of one conversation, `words` long, the first `shared_words` of them the same for every conversation. A longer one
/// begins with the whole of a shorter one: so do the turns of a conversation. `shared_seed` decides the words that are shared,
/// `seed` and `conversation` the others.
pub fn prompt(words: u32, shared_words: u32, shared_seed: u64, seed: u64, conversation: u64) -> String {
    let known: Vec<&str> = WORDS.split_whitespace().collect();
    let ids = |words: u32, seed: u64| seeded_ids(words as usize, seed, known.len());
    let shared = shared_words.min(words);
    let mut prompt = ids(shared, shared_seed);
    // A seed of its own for each conversation: seeds that follow one another would give streams that overlap.
    prompt.extend(ids(words - shared, mixed(seed ^ mixed(conversation))));
    prompt.into_iter().map(|id| known[id as usize]).collect::<Vec<_>>().join(" ")
}
