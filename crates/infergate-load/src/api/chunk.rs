//! What one event of an answer says: text, its kind, the reason it ended, usage, or an error.

mod messages;
mod responses;

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::api::body::Api;
use crate::api::failures::{is_empty, is_failure};

/// One event. Its JSON is that of chat and of completions; events of other APIs are translated. Other fields are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    /// Token counts so far, or of all.
    pub usage: Option<Usage>,
    /// The server failed after it had answered 200.
    error: Value,
    /// `error` where the whole event is one.
    #[serde(borrow)]
    object: Text<'a>,
    /// Nothing follows it.
    #[serde(skip)]
    pub is_last: bool,
    /// What it holds came before, in other events, unless nothing came.
    #[serde(skip)]
    pub is_repeat: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(deserialize_with = "reason")]
    finish_reason: Option<Reason>,
}

/// Token counts as the server gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Usage {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
    total_tokens: Option<u32>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
    // Some servers send both names of a count, so that they are no aliases.
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    input_tokens_details: Option<Details>,
    output_tokens_details: Option<Details>,
    // Of servers without details, DeepSeek's last.
    cached_tokens: Option<u32>,
    prompt_cache_hit_tokens: Option<u32>,
    // Anthropic's `input_tokens` leaves these out.
    cache_creation_input_tokens: Option<u32>,
    cache_read_input_tokens: Option<u32>,
}

/// What kinds the tokens of a prompt or an output are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u32>,
    #[serde(alias = "thinking_tokens")]
    reasoning_tokens: Option<u32>,
}

impl Usage {
    /// Tokens of the prompt, those of a cache included.
    pub fn input_tokens(self) -> Option<u64> {
        let apart = [self.cache_creation_input_tokens, self.cache_read_input_tokens];
        let all = || apart.into_iter().flatten().try_fold(self.input_tokens?, u32::checked_add);
        self.prompt_tokens.or_else(all).map(u64::from)
    }

    /// Tokens of the prompt that the server had in a cache.
    pub fn cached_tokens(self) -> Option<u64> {
        let details = self.prompt_tokens_details.or(self.input_tokens_details);
        let cached = details.and_then(|details| details.cached_tokens).or(self.cache_read_input_tokens);
        cached.or(self.cached_tokens).or(self.prompt_cache_hit_tokens).map(u64::from)
    }

    /// Tokens of the output, reasoning included.
    pub fn output_tokens(self) -> Option<u64> {
        Some(self.counted_tokens()? + self.apart_tokens())
    }

    fn counted_tokens(self) -> Option<u64> {
        self.completion_tokens.or(self.output_tokens).map(u64::from)
    }

    /// Reasoning that the count of the output leaves out, as some servers do: by the total it comes on top.
    pub fn apart_tokens(self) -> u64 {
        let counts = [self.input_tokens(), self.counted_tokens(), self.reasoning_tokens()];
        let sum = counts.into_iter().sum::<Option<u64>>();
        self.reasoning_tokens().filter(|_| sum.is_some() && sum == self.total_tokens.map(u64::from)).unwrap_or(0)
    }

    /// Tokens of the output that are reasoning.
    pub fn reasoning_tokens(self) -> Option<u64> {
        self.completion_tokens_details.or(self.output_tokens_details)?.reasoning_tokens.map(u64::from)
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// `length`, or the name of the limit: all that was asked for.
    Length,
    /// The model ended it.
    Stop,
    /// By its name no end of a whole answer, as `abort`, `error` or `content_filter`.
    Other(String),
}

/// Where other APIs say it.
#[derive(Default, Deserialize)]
struct End {
    #[serde(default, alias = "stop_reason", deserialize_with = "reason")]
    reason: Option<Reason>,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its text; names and arguments of tool calls, too.
    pub text: &'a str,
    /// It is no part of the answer itself.
    pub is_reasoning: bool,
}

impl<'a> From<Choice<'a>> for Chunk<'a> {
    fn from(choice: Choice<'a>) -> Self {
        Self { choices: Some(vec![choice]), ..Self::default() }
    }
}

impl<'a> Chunk<'a> {
    /// Reads an event of `api`. Any object in it that is named `usage` holds its counts: Groq's is in `x_groq`, Moonshot's in the choice.
    pub fn read(api: Api, json: &'a [u8]) -> serde_json::Result<Self> {
        let mut chunk: Self = match api {
            Api::Chat | Api::Completions | Api::Embeddings => serde_json::from_slice(json),
            Api::Responses => responses::read(json),
            Api::Messages => messages::read(json),
        }?;
        // Every count's name ends so; many events have a null for usage.
        if chunk.usage.is_none() && memmem::find(json, b"_tokens\"").is_some() {
            chunk.usage = usage_in(&serde_json::from_slice(json)?).map(Usage::deserialize).transpose()?;
        }
        if chunk.pieces().next().is_none() && is_failure(&serde_json::from_slice(json)?) {
            chunk.error = true.into();
        }
        Ok(chunk)
    }

    /// Every piece of output that is not empty, in order. A role alone, an empty text and a null are none.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.choices.iter().flatten().flat_map(Choice::pieces).filter(|piece| !piece.text.is_empty())
    }

    /// The server failed after it had answered 200.
    pub fn is_error(&self) -> bool {
        !is_empty(&self.error) || self.object.answer == "error"
    }

    /// Why it ended, if this event says so.
    pub fn finish_reason(&self) -> Option<Reason> {
        self.choices.iter().flatten().find_map(|choice| choice.finish_reason.clone())
    }
}

/// The first object named `usage`; its own comes before those in its fields.
fn usage_in(value: &Value) -> Option<&Value> {
    let usage = value.get("usage").filter(|usage| usage.is_object());
    usage.or_else(|| match value {
        Value::Object(fields) => fields.values().find_map(usage_in),
        Value::Array(items) => items.iter().find_map(usage_in),
        _ => None,
    })
}

/// An event that can be read, of one that cannot: without halves of characters, and with counts that are numbers.
pub fn mended(json: &[u8]) -> Vec<u8> {
    let text = without_lone_halves(json);
    let Ok(mut event) = serde_json::from_slice(&text) else { return text };
    mend_counts(&mut event);
    event.to_string().into_bytes()
}

/// Some servers write counts of tokens as texts, or with a fraction of zero. A negative one is none.
fn mend_counts(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                match number.filter(|_| name.ends_with("_tokens")) {
                    Some(number) if number < 0.0 => *value = Value::Null,
                    Some(number) if number.fract() == 0.0 => *value = (number as u64).into(),
                    _ => mend_counts(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mend_counts),
        _ => {}
    }
}

/// JSON in which escapes of half a character (`\ud83d`) without its other half are escapes of U+FFFD, as a text would show them: a server
/// that counts in UTF-16 can end a piece within a character.
fn without_lone_halves(json: &[u8]) -> Vec<u8> {
    /// The code that an escape of four digits at `at` says.
    fn code(json: &[u8], at: usize) -> Option<u16> {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
    let mut text = json.to_vec();
    let mut at = 0;
    while at < json.len() {
        at += match code(json, at) {
            Some(0xd800..=0xdbff) if matches!(code(json, at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                text[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            // An escaped backslash begins no escape.
            _ if json[at] == b'\\' => 2,
            _ => 1,
        };
    }
    text
}

impl Choice<'_> {
    fn pieces(&self) -> [Piece<'_>; 2] {
        // Beside a message its text can stand once more, as that of a plain completion.
        let answer = if self.delta.answer.is_empty() { &self.text.answer } else { &self.delta.answer };
        [Piece { text: &self.delta.thought, is_reasoning: true }, Piece { text: answer, is_reasoning: false }]
    }
}

/// All text of a value, whatever form it has: a text itself, a number, a list of parts, or an object whose fields hold it. Null is empty. Text
/// of a field that is not known is output where no other is. It is borrowed from the event where it is one text without escapes.
#[derive(Debug, Default)]
struct Text<'a> {
    answer: Cow<'a, str>,
    /// What is no part of the answer itself.
    thought: String,
}

/// A field by what it holds.
#[derive(Clone, Copy)]
enum Field {
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
    fn add_field(&mut self, field: Field, mut part: Self) {
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

/// How the names of reasons begin by which an answer is whole.
const WHOLE: [&str; 10] = ["stop", "end", "eos", "complete", "done", "tool", "function", "pause", "model_", "max"];

/// An empty one, which some servers send with every piece, is none.
fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reason>, D::Error> {
    let reason = Value::deserialize(deserializer)?;
    let name = reason.as_str().or_else(|| reason.get("type")?.as_str());
    let reason = name.unwrap_or_default().to_lowercase();
    Ok(match &*reason {
        "" | "null" | "none" => None,
        "length" | "limit" | "token_limit" | "max_tokens" | "max_output_tokens" => Some(Reason::Length),
        name if WHOLE.iter().any(|whole| name.starts_with(whole)) => Some(Reason::Stop),
        _ => Some(Reason::Other(reason)),
    })
}
