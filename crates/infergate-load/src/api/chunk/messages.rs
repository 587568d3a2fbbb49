//! Events of Anthropic's Messages.

use serde::Deserialize;
use serde_json::Value;

use super::text::Text;
use super::{Choice, Chunk};

/// A heartbeat can be without any.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: Text,
    #[serde(alias = "content_block")]
    delta: Value,
}

/// Reads one event.
pub fn read(event: Value) -> serde_json::Result<Chunk> {
    let Event { kind, delta } = serde_json::from_value(event)?;
    let mut choice = Choice::default();
    match &*kind.answer {
        "content_block_delta" => choice.delta = Text::from(delta),
        // It names what is to come.
        "content_block_start" => choice.delta = Text { guess: String::new(), ..Text::from(delta) },
        "message_delta" => choice.finish_reason = delta["stop_reason"].clone(),
        _ => {}
    }
    let is_last = kind.answer == "message_stop";
    Ok(Chunk { choices: Some(vec![choice]), object: kind, is_last, ..Chunk::default() })
}
