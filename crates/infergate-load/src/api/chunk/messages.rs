//! Events of Anthropic's Messages.

use serde::Deserialize;

use super::{Choice, Chunk, End, Text};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    #[serde(alias = "content_block_start")]
    ContentBlockDelta {
        #[serde(borrow, alias = "content_block")]
        delta: Text<'a>,
    },
    MessageDelta {
        delta: End,
    },
    MessageStop,
    Error,
    #[serde(other)]
    Other,
}

/// Reads one event.
pub fn read(json: &[u8]) -> serde_json::Result<Chunk<'_>> {
    Ok(match serde_json::from_slice(json)? {
        Event::ContentBlockDelta { delta } => Chunk::from(Choice { delta, ..Choice::default() }),
        Event::MessageDelta { delta: End { reason: finish_reason } } => {
            Chunk::from(Choice { finish_reason, ..Choice::default() })
        }
        Event::MessageStop => Chunk { is_last: true, ..Chunk::default() },
        Event::Error => Chunk { error: true.into(), ..Chunk::default() },
        Event::Other => Chunk::default(),
    })
}
