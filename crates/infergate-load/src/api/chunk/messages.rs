//! Events of Anthropic's Messages.

use serde::Deserialize;

use super::reason::End;
use super::text::Text;
use super::{Choice, Chunk};

#[derive(Deserialize)]
struct Event {
    /// A heartbeat can be without.
    #[serde(default, rename = "type")]
    kind: Text,
    #[serde(default, alias = "content_block")]
    delta: Text,
}

#[derive(Deserialize)]
struct Ended {
    #[serde(default)]
    delta: End,
}

/// Reads one event.
pub fn read(json: &[u8]) -> serde_json::Result<Chunk> {
    let Event { kind, delta } = serde_json::from_slice(json)?;
    let mut choice = Choice::default();
    match &*kind.answer {
        "content_block_delta" => choice.delta = delta,
        // It names what is to come.
        "content_block_start" => choice.delta = Text { guess: String::new(), ..delta },
        "message_delta" => choice.finish_reason = serde_json::from_slice::<Ended>(json)?.delta.reason,
        _ => {}
    }
    let is_last = kind.answer == "message_stop";
    Ok(Chunk { choices: Some(vec![choice]), object: kind, is_last, ..Chunk::default() })
}
