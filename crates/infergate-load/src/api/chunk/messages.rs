//! Events of Anthropic's Messages.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Choice, Chunk, End, Text, Usage};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    MessageStart {
        /// Of what it has, its usage alone is read.
        #[serde(borrow)]
        message: Chunk<'a>,
    },
    #[serde(alias = "content_block_start")]
    ContentBlockDelta {
        #[serde(borrow, alias = "content_block")]
        delta: Text<'a>,
    },
    MessageDelta {
        delta: End,
        usage: Option<Usage>,
    },
    MessageStop,
    Error,
    #[serde(other)]
    Other,
}

/// Reads one event.
pub fn read(json: &[u8]) -> serde_json::Result<Chunk<'_>> {
    Ok(match serde_json::from_slice(json)? {
        Event::MessageStart { message } => message,
        Event::ContentBlockDelta { delta } => Chunk::from(Choice { delta, ..Choice::default() }),
        Event::MessageDelta { delta: End { reason: finish_reason }, usage } => {
            Chunk { usage, ..Chunk::from(Choice { finish_reason, ..Choice::default() }) }
        }
        Event::MessageStop => Chunk { is_last: true, ..Chunk::default() },
        Event::Error => Chunk { error: Some(IgnoredAny), ..Chunk::default() },
        Event::Other => Chunk::default(),
    })
}
