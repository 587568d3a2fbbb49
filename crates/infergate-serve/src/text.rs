//! Text to tokens and back, with the engine's tokenizer where it has one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use infergate::engine::{Engine, TokenId};

/// The longest tokens of published models have so many bytes.
const MOST_TOKEN_BYTES: usize = 128;

/// The engine that was loaded. The requests run on its scheduler; this one only reads and writes text.
pub struct Text {
    /// Reads prompts, one at a time: beside an engine at work a second one at once would only take its cores.
    reader: Mutex<Box<dyn Engine + Send>>,
    /// Writes tokens, on the thread of HTTP alone. Where the engine cannot be had twice the reader does it, and a long prompt
    /// holds up every stream.
    writer: Option<Mutex<Box<dyn Engine + Send>>>,
    has_tokenizer: bool,
    vocab_tokens: usize,
}

impl Text {
    /// Looks whether `engine` has a tokenizer.
    ///
    /// # Errors
    /// A tokenizer that fails.
    pub fn new(engine: Box<dyn Engine + Send>) -> Result<Self> {
        let ids = engine.tokenize("a")?;
        let has_tokenizer = match &ids {
            Some(ids) => engine.detokenize(ids)?.is_some(),
            None => false,
        };
        let ids = ids.unwrap_or_default();
        let fork = if has_tokenizer { engine.fork().ok() } else { None };
        let writer = fork.filter(|fork| matches!(fork.detokenize(&ids), Ok(Some(_)))).map(Mutex::new);
        let vocab_tokens = engine.info().vocab_tokens;
        Ok(Self { reader: Mutex::new(engine), writer, has_tokenizer, vocab_tokens })
    }

    /// The longest text that can have so few tokens, bytes. A longer one is not worth the time that it takes to tokenize.
    pub fn most_bytes(&self, tokens: usize) -> usize {
        if self.has_tokenizer { tokens.saturating_mul(MOST_TOKEN_BYTES) } else { tokens }
    }

    /// Ids are below this.
    pub fn vocab_tokens(&self) -> usize {
        self.vocab_tokens
    }

    /// The text's tokens; without a tokenizer one for each byte.
    ///
    /// # Errors
    /// A tokenizer that fails.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        let with_tokenizer = if self.has_tokenizer { locked(&self.reader).tokenize(text)? } else { None };
        Ok(with_tokenizer.unwrap_or_else(|| {
            let vocab = TokenId::try_from(self.vocab_tokens).unwrap_or(TokenId::MAX).max(1);
            text.bytes().map(|byte| TokenId::from(byte) % vocab).collect()
        }))
    }

    fn decode(&self, tokens: &[TokenId]) -> Result<String> {
        let writer = self.writer.as_ref().unwrap_or(&self.reader);
        Ok(locked(writer).detokenize(tokens)?.unwrap_or_default())
    }
}

fn locked(engine: &Mutex<Box<dyn Engine + Send>>) -> MutexGuard<'_, Box<dyn Engine + Send>> {
    // A tokenizer that panicked on one text is still asked for the next one.
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request's output as text, token by token. Without a tokenizer token 17 is `t17 `.
#[derive(Debug, Default)]
pub struct Decoder {
    tokens: Vec<TokenId>,
    /// Tokens before this one cannot change any more what stands behind them.
    settled: usize,
    /// Tokens whose text was given.
    given: usize,
}

impl Decoder {
    /// The text that `token` adds. Empty while a character is not whole; with `last` whatever there is of it.
    ///
    /// # Errors
    /// A tokenizer that fails.
    pub fn push(&mut self, text: &Text, token: TokenId, last: bool) -> Result<String> {
        if !text.has_tokenizer {
            return Ok(format!("t{token} "));
        }
        self.tokens.push(token);
        // A tokenizer may write a token otherwise where it stands first (spaces): some given ones are decoded with it.
        let before = text.decode(&self.tokens[self.settled..self.given])?;
        let all = text.decode(&self.tokens[self.settled..])?;
        if all.ends_with('\u{fffd}') && !last {
            return Ok(String::new());
        }
        let new = all.strip_prefix(before.as_str()).unwrap_or_else(|| all.get(before.len()..).unwrap_or(""));
        if new.is_empty() && !last {
            return Ok(String::new());
        }
        (self.settled, self.given) = (self.given, self.tokens.len());
        Ok(new.to_owned())
    }
}
