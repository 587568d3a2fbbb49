//! Events of OpenAI's Responses.

use serde::Deserialize;
use serde_json::Value;

use super::reason::{End, Reason};
use super::text::{Field, Text};
use super::{Choice, Chunk};

#[derive(Deserialize)]
struct Event {
    /// A heartbeat can be without.
    #[serde(default, rename = "type")]
    kind: Text,
    #[serde(default)]
    delta: Text,
    /// All of a text, when it is whole.
    #[serde(default, alias = "arguments", alias = "refusal")]
    text: Text,
    /// The name of a tool's call comes with it, before its arguments.
    #[serde(default)]
    item: Text,
    #[serde(default)]
    response: Response,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    error: Value,
    incomplete_details: Option<End>,
}

/// Reads one event.
pub fn read(json: &[u8]) -> serde_json::Result<Chunk> {
    let Event { kind, delta, text, item, response } = serde_json::from_slice(json)?;
    let Response { error, incomplete_details } = response;
    let is_last = matches!(&*kind.answer, "response.completed" | "response.incomplete");
    let finish_reason = incomplete_details.and_then(|end| end.reason).or(is_last.then_some(Reason::Stop));
    let mut choice = Choice { finish_reason, ..Choice::default() };
    let field = if kind.answer.contains("reasoning") { Field::Thinking } else { Field::Text };
    let is_repeat = kind.answer.ends_with(".done");
    let part = match &*kind.answer {
        "response.output_item.added" => Text { guess: String::new(), ..item },
        _ if is_repeat => text,
        _ => delta,
    };
    choice.delta.add_field(field, part);
    Ok(Chunk { choices: Some(vec![choice]), error, object: kind, is_last, is_repeat, ..Chunk::default() })
}
