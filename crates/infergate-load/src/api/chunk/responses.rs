//! Events of OpenAI's Responses.

use serde::Deserialize;
use serde_json::Value;

use super::text::{Field, Text};
use super::{Choice, Chunk};

/// A heartbeat can be without any.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: Text,
    delta: Text,
    /// All of a text, when it is whole.
    #[serde(alias = "arguments", alias = "refusal")]
    text: Text,
    /// The name of a tool's call comes with it, before its arguments.
    item: Text,
    response: Value,
}

/// Reads one event.
pub fn read(event: Value) -> serde_json::Result<Chunk> {
    let Event { kind, delta, text, item, response } = serde_json::from_value(event)?;
    let is_last = matches!(&*kind.answer, "response.completed" | "response.incomplete");
    let finish_reason = match &response["incomplete_details"]["reason"] {
        Value::Null if is_last => Value::from("stop"),
        reason => reason.clone(),
    };
    let mut choice = Choice { finish_reason, ..Choice::default() };
    let field = if kind.answer.contains("reasoning") { Field::Thinking } else { Field::Text };
    let is_repeat = kind.answer.ends_with(".done");
    let part = match &*kind.answer {
        "response.output_item.added" => Text { guess: String::new(), ..item },
        _ if is_repeat => text,
        _ => delta,
    };
    choice.delta.add_field(field, part);
    let error = response["error"].clone();
    Ok(Chunk { choices: Some(vec![choice]), error, object: kind, is_last, is_repeat, ..Chunk::default() })
}
