//! The text of a value, whatever form it has.

use serde::Deserialize;
use serde_json::{Map, Value};

/// All text of a value, whatever form it has: a text itself, a number, a list of parts, or an object whose fields hold it. Null is empty.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub struct Text {
    pub answer: String,
    /// What is no part of the answer itself.
    pub thought: String,
    /// Of fields that nobody knows: output, or said of it.
    pub guess: String,
}

/// A field by what it holds.
pub enum Field {
    Text,
    Thinking,
    Name,
    /// What is said of the output.
    Label,
    Unknown,
}

/// How the names of fields end whose texts are no output.
const LABELS: [&str; 24] = [
    "id",
    "type",
    "index",
    "object",
    "model",
    "provider",
    "created",
    "_at",
    "status",
    "phase",
    "reason",
    "signature",
    "format",
    "version",
    "encrypted_content",
    "data",
    "obfuscation",
    "fingerprint",
    "logprobs",
    "citation",
    "citations",
    "annotations",
    "url",
    "title",
];

impl Field {
    fn of(name: &str) -> Self {
        match name {
            // A call of a tool is output, too: its name and its arguments.
            "text" | "content" | "refusal" | "tool_calls" | "function" | "function_call" | "arguments"
            | "partial_json" | "audio" | "transcript" => Self::Text,
            "reasoning" | "reasoning_content" | "reasoning_text" | "reasoning_details" | "thinking" | "summary" => {
                Self::Thinking
            }
            "name" => Self::Name,
            "role" => Self::Label,
            _ if LABELS.iter().any(|label| name.ends_with(label)) => Self::Label,
            _ => Self::Unknown,
        }
    }
}

impl Text {
    /// Of a value. Where it `is_known` to hold output, a number is a text, too.
    fn of(value: Value, is_known: bool) -> Self {
        let mut text = Self::default();
        match value {
            Value::String(answer) => text.answer = answer,
            Value::Number(number) if is_known => text.answer = number.to_string(),
            Value::Array(parts) => parts.into_iter().for_each(|part| text.add(&Self::of(part, is_known))),
            Value::Object(fields) => return Self::of_fields(fields),
            _ => {}
        }
        text
    }

    fn of_fields(fields: Map<String, Value>) -> Self {
        let has_role = fields.contains_key("role");
        let (mut name, mut text) = (Self::default(), Self::default());
        for (field, value) in fields {
            match Field::of(&field) {
                Field::Name => name = Self::of(value, true),
                Field::Label => {}
                Field::Unknown => {
                    let Self { answer, thought, guess } = Self::of(value, false);
                    text.guess += &[answer, thought, guess].concat();
                }
                field => text.add_field(field, Self::of(value, true)),
            }
        }
        // Beside a role it is the speaker's.
        if !has_role {
            name.add(&text);
            text = name;
        }
        text
    }

    fn add(&mut self, part: &Self) {
        self.answer += &part.answer;
        self.thought += &part.thought;
        self.guess += &part.guess;
    }

    /// Its part behind `field`. Some servers send one text under two names: it is added once.
    pub fn add_field(&mut self, field: Field, mut part: Self) {
        if let Field::Thinking = field {
            part = Self { answer: String::new(), thought: part.thought + &part.answer, ..part };
        }
        if part.answer != self.answer {
            self.answer += &part.answer;
        }
        if part.thought != self.thought {
            self.thought += &part.thought;
        }
        self.guess += &part.guess;
    }
}

impl From<Value> for Text {
    fn from(value: Value) -> Self {
        Self::of(value, true)
    }
}
