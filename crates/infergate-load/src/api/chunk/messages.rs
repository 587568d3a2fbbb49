//! Events of Anthropic's Messages.

use serde::Deserialize;

use super::reason::End;
use super::text::Text;
use super::{Choice, Chunk};

#[derive(Deserialize)]
struct Event<'a> {
    /// A heartbeat can be without.
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default, alias = "content_block")]
    delta: Text<'a>,
}

#[derive(Deserialize)]
struct Ended {
    #[serde(default)]
    delta: End,
}

/// Reads one event.
pub fn read(json: &[u8]) -> serde_json::Result<Chunk<'_>> {
    let Event { kind, delta } = serde_json::from_slice(json)?;
    let mut choice = Choice::default();
    match &*kind.answer {
        "content_block_start" | "content_block_delta" => choice.delta = delta,
        "message_delta" => choice.finish_reason = serde_json::from_slice::<Ended>(json)?.delta.reason,
        _ => {}
    }
    let is_last = kind.answer == "message_stop";
    Ok(Chunk { choices: Some(vec![choice]), object: kind, is_last, ..Chunk::default() })
}
