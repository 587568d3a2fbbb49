//! What one event of an answer says: text, its kind, the reason it ended, usage, or an error.

mod mending;
mod messages;
mod reason;
mod responses;
mod text;
mod usage;

use serde::Deserialize;
use serde_json::Value;

pub use mending::mended;
pub use reason::Reason;
use text::Text;
pub use usage::Usage;

use crate::api::body::Api;
use crate::api::failures::{is_empty, is_failure};

/// One event. Its JSON is that of chat and of completions; events of other APIs are translated. Other fields are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk {
    choices: Option<Vec<Choice>>,
    /// Token counts so far, or of all.
    #[serde(skip)]
    pub usage: Option<Usage>,
    /// The server failed after it had answered 200.
    error: Value,
    /// `error` where the whole event is one.
    object: Text,
    /// Nothing follows it.
    #[serde(skip)]
    pub is_last: bool,
    /// What it holds came before, in other events, unless nothing came.
    #[serde(skip)]
    pub is_repeat: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    delta: Text,
    text: Text,
    finish_reason: Value,
}

/// A piece of output.
pub struct Piece<'a> {
    /// Its text; names and arguments of tool calls, too.
    pub text: &'a str,
    /// It is no part of the answer itself.
    pub is_reasoning: bool,
}

impl Chunk {
    /// Reads an event of `api`.
    pub fn read(api: Api, json: &[u8]) -> serde_json::Result<Self> {
        let event: Value = serde_json::from_slice(json)?;
        let (usage, is_failure) = (Usage::within(&event), is_failure(&event));
        let mut chunk: Self = match api {
            Api::Chat | Api::Completions | Api::Embeddings => serde_json::from_value(event),
            Api::Responses => responses::read(event),
            Api::Messages => messages::read(event),
        }?;
        chunk.usage = usage;
        if is_failure && chunk.pieces().next().is_none() {
            chunk.error = true.into();
        }
        Ok(chunk)
    }

    /// Every piece of output that is not empty, in order. A role alone, an empty text and a null are none.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.choices.iter().flatten().flat_map(Choice::pieces).filter(|piece| !piece.text.is_empty())
    }

    /// Text of fields that nobody knows, where no other is.
    pub fn guess(&self) -> String {
        let texts = self.choices.iter().flatten().map(|choice| &*choice.delta.guess);
        if self.pieces().next().is_none() { texts.collect() } else { String::new() }
    }

    /// The server failed after it had answered 200.
    pub fn is_error(&self) -> bool {
        !is_empty(&self.error) || self.object.answer == "error"
    }

    /// Why it ended, if this event says so.
    pub fn finish_reason(&self) -> Option<Reason> {
        self.choices.iter().flatten().find_map(|choice| Reason::of(&choice.finish_reason))
    }
}

impl Choice {
    fn pieces(&self) -> [Piece<'_>; 2] {
        // Beside a message its text can stand once more, as that of a plain completion.
        let answer = if self.delta.answer.is_empty() { &self.text.answer } else { &self.delta.answer };
        [Piece { text: &self.delta.thought, is_reasoning: true }, Piece { text: answer, is_reasoning: false }]
    }
}
