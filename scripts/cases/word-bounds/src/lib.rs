//! A pre-tokenizer that splits at Unicode's word boundaries. The prompt is plain ASCII; what comes after it is not.

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};
use unicode_segmentation::UnicodeSegmentation;

const CONTEXT_TOKENS: usize = 256;
const WORDS: [&str; 8] = ["the", "model", "answers,", "it's", "3.5", "times", "faster;", "(almost)"];
const OTHER: &str = "Über die Brücke gehen fünf Gänse, schön der Reihe nach; für größere Füße wär’ sie zu schmal. Où êtes-vous allés, \
                     après l’été? Там, где всегда тихо, мы читали вслух. Η μέρα ήταν ζεστή και η θάλασσα ήρεμη.";

struct Splitter {
    tokens: usize,
}

/// A number that depends on every word.
fn split(text: &str) -> TokenId {
    text.unicode_words().fold(0, |sum, word| (sum * 31 + word.len() as TokenId) % 256)
}

impl Engine for Splitter {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "splitter".into(),
            version: "1".into(),
            model: "words".into(),
            dtype: "u8".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure_fits(prompt.len() + 1, CONTEXT_TOKENS)?;
        self.tokens = prompt.len() + 1;
        let text: Vec<&str> = prompt.iter().map(|id| WORDS[*id as usize % WORDS.len()]).collect();
        Ok(split(&text.join(" ")))
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.tokens + 1, CONTEXT_TOKENS)?;
        self.tokens += 1;
        Ok((split(OTHER) + self.tokens as TokenId) % 256)
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    Ok(Box::new(Splitter { tokens: 0 }))
}
