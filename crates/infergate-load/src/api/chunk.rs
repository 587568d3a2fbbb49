//! What one event of a completion says: text, its kind, the reason it ended, usage, or an error.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One event's JSON, for chat and for completions alike. Fields of others are passed over.
#[derive(Debug, Default, Deserialize)]
pub struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    /// Token counts so far, or of all; where they are sent differs.
    pub usage: Option<Usage>,
    /// The server failed after it had answered 200.
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(deserialize_with = "reason")]
    finish_reason: Option<Reason>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    /// Sent in place of content.
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
    /// What tool calls were before there were several.
    #[serde(borrow)]
    function_call: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolCall<'a> {
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
}

/// Token counts as the server gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    completion_tokens_details: Option<Details>,
}

/// What kinds the tokens of an output are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Details {
    reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Tokens of the output, reasoning included.
    pub fn output_tokens(self) -> Option<u64> {
        self.completion_tokens?.checked_add(self.apart_tokens())
    }

    /// Reasoning that `completion_tokens` leaves out, as some servers do: by the total it comes on top.
    pub fn apart_tokens(self) -> u64 {
        let counts = [self.prompt_tokens, self.completion_tokens, self.reasoning_tokens()];
        let sum = counts.into_iter().try_fold(0, |sum: u64, tokens| sum.checked_add(tokens?));
        self.reasoning_tokens().filter(|_| sum.is_some() && sum == self.total_tokens).unwrap_or(0)
    }

    /// Tokens of the output that are reasoning.
    pub fn reasoning_tokens(self) -> Option<u64> {
        self.completion_tokens_details?.reasoning_tokens
    }
}

/// An error beside or in place of choices. Only its code is kept: its message may hold the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerError {
    /// A status from 400 to 599, where it says one.
    pub status: Option<u16>,
}

/// Why a choice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `length`: all that was asked for.
    Length,
    /// `abort` or `error`: the server gave it up.
    Aborted,
    /// Anything else.
    Other,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its text; a tool call's name or arguments.
    pub text: &'a str,
    /// It is no part of the answer itself.
    pub is_reasoning: bool,
}

impl Chunk<'_> {
    /// Every piece of output that is not empty, in order. A role alone, an empty text and a null are none.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.choices.iter().flatten().flat_map(Choice::pieces).filter(|piece| !piece.text.is_empty())
    }

    /// The server failed after it had answered 200.
    pub fn error(&self) -> Option<ServerError> {
        #[derive(Deserialize)]
        struct Form<'a> {
            #[serde(borrow, default)]
            code: Option<&'a RawValue>,
        }
        let error = self.error?;
        let code = serde_json::from_str::<Form<'_>>(error.get()).ok().and_then(|form| form.code?.get().parse().ok());
        Some(ServerError { status: code.filter(|code| (400..600).contains(code)) })
    }

    /// Why it ended, if this event says so.
    pub fn finish_reason(&self) -> Option<Reason> {
        self.choices.iter().flatten().find_map(|choice| choice.finish_reason)
    }
}

/// JSON in which escapes of half a character (`\ud83d`) without its other half are escapes of U+FFFD, as a text would show them: a server
/// that counts in UTF-16 can end a piece within a character.
pub fn without_lone_halves(json: &[u8]) -> Vec<u8> {
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

/// One text under two names is sent once under each.
fn first<'a>(text: &'a Text<'_>, other: &'a Text<'_>) -> &'a str {
    if text.0.is_empty() { &other.0 } else { &text.0 }
}

impl Choice<'_> {
    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let answer = |text| Piece { text, is_reasoning: false };
        let reasoning = |text| Piece { text, is_reasoning: true };
        let delta = self.delta.iter().flat_map(move |delta| {
            let calls =
                delta.tool_calls.iter().flatten().filter_map(|call| call.function.as_ref()).chain(&delta.function_call);
            let calls = calls.flat_map(|call| [&*call.name.0, &*call.arguments.0]);
            let thought = first(&delta.reasoning_content, &delta.reasoning);
            // Beside a message its text can stand once more, as that of a plain completion.
            let content = first(&delta.content, &self.text);
            [reasoning(thought), answer(content), answer(&delta.refusal.0)].into_iter().chain(calls.map(answer))
        });
        let plain = self.delta.is_none().then(|| answer(&*self.text.0));
        delta.chain(plain)
    }
}

/// Text that is borrowed from the event where it holds no escapes. Null is empty; a list of parts, which some servers send,
/// is the text of its parts.
#[derive(Debug, Default)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Text)
    }
}

struct TextVisitor;

/// One part of a text.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut text = String::new();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            text.push_str(&part.text.0);
        }
        Ok(Cow::Owned(text))
    }
}

/// An empty one, which some servers send with every piece, is none.
fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reason>, D::Error> {
    let reason = Text::deserialize(deserializer)?;
    Ok(match &*reason.0 {
        "" => None,
        "length" => Some(Reason::Length),
        "abort" | "error" => Some(Reason::Aborted),
        _ => Some(Reason::Other),
    })
}
