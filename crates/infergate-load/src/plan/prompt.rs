//! Prompts of about so many tokens, each unlike the others, so that no prefix cache is measured by accident.

use infergate_core::prompt::seeded_ids;

/// Short common words: with the space before it each is one token of the usual vocabularies, so that a prompt of n words has
/// about n tokens. What it has exactly, the server's usage says. 128 of them, a power of two: every word is as likely.
const WORDS: [&str; 128] = [
    "the", "of", "and", "to", "in", "is", "that", "it", "for", "was", "on", "are", "as", "with", "his", "they", "at",
    "be", "this", "have", "from", "or", "one", "had", "by", "word", "but", "not", "what", "all", "were", "we", "when",
    "your", "can", "said", "there", "use", "an", "each", "which", "she", "do", "how", "their", "if", "will", "up",
    "other", "about", "out", "many", "then", "them", "these", "so", "some", "her", "would", "make", "like", "him",
    "into", "time", "has", "look", "two", "more", "write", "go", "see", "number", "no", "way", "could", "people", "my",
    "than", "first", "water", "been", "call", "who", "oil", "its", "now", "find", "long", "down", "day", "did", "get",
    "come", "made", "may", "part", "over", "new", "sound", "take", "only", "little", "work", "know", "place", "year",
    "live", "me", "back", "give", "most", "very", "after", "thing", "our", "just", "name", "good", "man", "think",
    "say", "great", "where", "help", "through", "much", "before", "line",
];

/// The prompt of one conversation, `words` long, the first `shared_words` of them the same for every conversation. A longer one
/// begins with the whole of a shorter one: so do the turns of a conversation. `shared_seed` decides the words that are shared,
/// `seed` and `conversation` the others.
pub fn prompt(words: u32, shared_words: u32, shared_seed: u64, seed: u64, conversation: u64) -> String {
    let shared = shared_words.min(words);
    let mut text = String::with_capacity(6 * words as usize);
    for (words, seed) in [(shared, shared_seed), (words - shared, mixed(seed, conversation))] {
        for id in seeded_ids(words as usize, seed, WORDS.len()) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(WORDS.get(id as usize).copied().unwrap_or("the"));
        }
    }
    text
}

/// A seed of its own for each number: seeds that follow one another would give streams that overlap.
fn mixed(seed: u64, number: u64) -> u64 {
    let mut x = seed ^ number.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}
