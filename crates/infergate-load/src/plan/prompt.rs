//! Prompts of about so many tokens, each unlike the others, so that no prefix cache is measured by accident.

use infergate_core::prompt::seeded_ids;
use infergate_core::splitmix::mixed;

/// Short common words: with the space before it each is one token of the usual vocabularies, so that a prompt of n words has
/// about n tokens. What it has exactly, the server's usage says. 128 of them, a power of two: every word is as likely.
const WORDS: &str = "\
    the of and to in is that it for was on are as with his they at be this have from or one had by word but not what \
    all were we when your can said there use an each which she do how their if will up other about out many then \
    them these so some her would make like him into time has look two more write go see number no way could people \
    my than first water been call who oil its now find long down day did get come made may part over new sound take \
    only little work know place year live me back give most very after thing our just name good man think say great \
    where help through much before line";

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
