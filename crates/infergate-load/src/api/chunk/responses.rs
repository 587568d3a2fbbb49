//! Events of OpenAI's Responses.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Choice, Chunk, End, Field, Reason, Text};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    delta: Text<'a>,
    #[serde(default)]
    response: Response,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    error: Option<IgnoredAny>,
    incomplete_details: Option<End>,
}

/// Reads one event.
pub fn read(json: &[u8]) -> serde_json::Result<Chunk<'_>> {
    let Event { kind, delta, response } = serde_json::from_slice(json)?;
    let Response { error, incomplete_details } = response;
    let is_last = matches!(&*kind.answer, "response.completed" | "response.incomplete");
    let finish_reason = incomplete_details.and_then(|end| end.reason).or(is_last.then_some(Reason::Stop));
    let mut choice = Choice { finish_reason, ..Choice::default() };
    let is_reasoning = kind.answer.contains("reasoning");
    choice.delta.add_field(if is_reasoning { Field::Thinking } else { Field::Text }, delta);
    Ok(Chunk { error, object: kind, is_last, ..Chunk::from(choice) })
}
