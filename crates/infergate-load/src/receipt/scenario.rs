//! What users do: how long their prompts and the answers are.

use serde::{Deserialize, Serialize};

/// One kind of use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name, for example `chatbot`.
    pub name: String,
    /// Tokens of the first turn's prompt: as many common words, which is about as many tokens.
    pub input_tokens: u32,
    /// Tokens of an answer, at most.
    pub output_tokens: u32,
    /// Requests of one conversation. Each prompt begins with the whole of the one before.
    #[serde(default = "one")]
    pub turns: u32,
    /// Tokens that each further turn adds to the prompt.
    #[serde(default)]
    pub turn_tokens: u32,
}

fn one() -> u32 {
    1
}

/// The largest prompt or answer that can be asked for.
pub const MAX_TOKENS: u32 = 1_000_000;
/// The most turns of a conversation.
pub const MAX_TURNS: u32 = 1_000;
/// Part of a context that a prompt of words and its answer may fill: a word can be two tokens, and a chat's template adds some.
const USED_CONTEXT: f64 = 0.9;

impl Scenario {
    /// One turn.
    pub fn plain(name: &str, input_tokens: u32, output_tokens: u32) -> Self {
        Self { name: name.to_owned(), input_tokens, output_tokens, turns: 1, turn_tokens: 0 }
    }

    /// The four that are run where none is named.
    pub fn defaults() -> Vec<Self> {
        let agent = Self { turns: 4, turn_tokens: 128, ..Self::plain("agent", 2048, 64) };
        vec![
            Self::plain("chatbot", 256, 128),
            Self::plain("retrieval", 1024, 128),
            Self::plain("code", 512, 384),
            agent,
        ]
    }

    /// Tokens of the prompt of turn `turn`, from 0.
    pub fn prompt_tokens(&self, turn: u32) -> u32 {
        self.input_tokens + turn * self.turn_tokens
    }

    /// Tokens of the longest prompt and its answer.
    pub fn longest_tokens(&self) -> u32 {
        self.prompt_tokens(self.turns.saturating_sub(1)) + self.output_tokens
    }

    /// Made to fit `context`, of `context_tokens`, with all its parts in proportion, and a sentence about it where it had to be
    /// made smaller.
    pub fn scaled(&self, context: &str, context_tokens: u32) -> (Self, Option<String>) {
        let room = f64::from(context_tokens) * USED_CONTEXT;
        let longest = f64::from(self.longest_tokens());
        if longest <= room {
            return (self.clone(), None);
        }
        let factor = room / longest;
        let part = |tokens: u32| (f64::from(tokens) * factor).floor() as u32;
        let scaled = Self {
            input_tokens: part(self.input_tokens).max(1),
            output_tokens: part(self.output_tokens).max(1),
            turn_tokens: part(self.turn_tokens),
            ..self.clone()
        };
        let lengths = |of: &Self| {
            let more = if of.turns > 1 { format!(", {} more a turn", of.turn_tokens) } else { String::new() };
            format!("{} tokens in{more} and {} out", of.input_tokens, of.output_tokens)
        };
        let (was, is) = (lengths(self), lengths(&scaled));
        let note = format!("{}: shortened from {was} to fit {context} ({context_tokens}): {is}", self.name);
        (scaled, Some(note))
    }
}
