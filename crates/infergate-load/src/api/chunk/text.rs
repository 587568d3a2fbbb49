//! The text of a value, whatever form it has.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// All text of a value, whatever form it has: a text itself, a number, a list of parts, or an object whose fields hold it. Null is empty. Text
/// of a field that is not known is output where no other is. It is borrowed from the event where it is one text without escapes.
#[derive(Debug, Default)]
pub struct Text<'a> {
    pub answer: Cow<'a, str>,
    /// What is no part of the answer itself.
    pub thought: String,
}

/// A field by what it holds.
#[derive(Clone, Copy)]
pub enum Field {
    Text,
    Thinking,
    Name,
    Role,
    /// What is said of the output.
    Label,
    /// Output, where nothing else is.
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
            "name" => Self::Name,
            "role" => Self::Role,
            _ if LABELS.iter().any(|label| name.ends_with(label)) => Self::Label,
            "summary" => Self::Thinking,
            _ if ["reasoning", "thinking", "thought"].iter().any(|kind| name.starts_with(kind)) => Self::Thinking,
            _ => Self::Unknown,
        }
    }
}

impl<'a> Text<'a> {
    fn is_empty(&self) -> bool {
        self.answer.is_empty() && self.thought.is_empty()
    }

    fn add(&mut self, part: Self) {
        self.thought.push_str(&part.thought);
        if self.answer.is_empty() {
            self.answer = part.answer;
        } else {
            self.answer.to_mut().push_str(&part.answer);
        }
    }

    /// Its part behind `field`. Some servers send one text under two names: it is added once.
    pub fn add_field(&mut self, field: Field, mut part: Self) {
        if let Field::Thinking = field {
            part = Self { answer: "".into(), thought: part.thought + &part.answer };
        }
        if part.answer == self.answer {
            part.answer = "".into();
        }
        if part.thought == self.thought {
            part.thought.clear();
        }
        self.add(part);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TextVisitor { is_known: true }.deserialize(deserializer)
    }
}

#[derive(Clone, Copy)]
struct TextVisitor {
    /// The field is known to hold output: a number is a text, too.
    is_known: bool,
}

impl TextVisitor {
    fn text<'a, E>(self, text: impl Into<Cow<'a, str>>) -> Result<Text<'a>, E> {
        Ok(Text { answer: text.into(), thought: String::new() })
    }

    fn number<'a, E>(self, number: impl ToString) -> Result<Text<'a>, E> {
        self.text(if self.is_known { number.to_string() } else { String::new() })
    }
}

impl<'de> DeserializeSeed<'de> for TextVisitor {
    type Value = Text<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        self.text(text)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.text(text.to_owned())
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        self.text("")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        self.text("")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.number(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.number(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        self.number(number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut text = Text::default();
        while let Some(part) = parts.next_element_seed(self)? {
            text.add(part);
        }
        Ok(text)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut name, mut text, mut unknown, mut has_role) =
            (Text::default(), Text::default(), Text::default(), false);
        while let Some(field) = fields.next_key::<Cow<'_, str>>()? {
            let field = Field::of(&field);
            has_role |= matches!(field, Field::Role);
            match field {
                Field::Name => name = fields.next_value()?,
                Field::Role | Field::Label => drop(fields.next_value::<IgnoredAny>()?),
                Field::Unknown => unknown.add(fields.next_value_seed(Self { is_known: false })?),
                Field::Text | Field::Thinking => text.add_field(field, fields.next_value()?),
            }
        }
        // Beside a role it is the speaker's.
        if !has_role {
            name.add(text);
            text = name;
        }
        Ok(if text.is_empty() { unknown } else { text })
    }
}
