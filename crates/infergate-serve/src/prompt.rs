//! The prompt of a request, read without keeping anything that becomes no part of it: a list of `{}` takes three bytes an entry
//! in a body, and fifty times as much as values.

use std::fmt;
use std::marker::PhantomData;

use infergate::engine::TokenId;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, de};

/// What to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// Text, or a list of one.
    Text(String),
    /// Token ids, or a list of one list of them.
    Ids(Vec<TokenId>),
    /// More than one prompt, none of which is kept.
    Several,
}

/// An entry of a list: of a prompt's ids, or of several prompts.
enum Entry {
    Id(TokenId),
    Text(String),
    Ids(Vec<TokenId>),
}

/// All messages as one text: there are no chat templates here.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// `role: content` a line.
    pub text: String,
    /// How many there are.
    pub messages: usize,
    /// One has a part that is no text.
    pub has_other_parts: bool,
}

/// Whether a request's `stop` names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopIsEmpty(pub bool);

/// Reads any value by its parts of `T`.
struct Any<T>(PhantomData<T>);

impl<'de> Deserialize<'de> for Prompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData::<Self>))
    }
}

impl<'de> Visitor<'de> for Any<Prompt> {
    type Value = Prompt;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of token ids")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Prompt, E> {
        Ok(Prompt::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Prompt, A::Error> {
        let first = match list.next_element()? {
            None => return Ok(Prompt::Ids(Vec::new())),
            Some(Entry::Text(text)) => Prompt::Text(text),
            Some(Entry::Ids(ids)) => Prompt::Ids(ids),
            Some(Entry::Id(first)) => {
                let mut ids = vec![first];
                while let Some(id) = list.next_element()? {
                    ids.push(id);
                }
                return Ok(Prompt::Ids(ids));
            }
        };
        let mut others = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            others += 1;
        }
        Ok(if others == 0 { first } else { Prompt::Several })
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData::<Self>))
    }
}

impl<'de> Visitor<'de> for Any<Entry> {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token id, a text or a list of token ids")
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<Entry, E> {
        TokenId::try_from(id).map(Entry::Id).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(id), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Entry, E> {
        Ok(Entry::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entry, A::Error> {
        let mut ids = Vec::new();
        while let Some(id) = list.next_element()? {
            ids.push(id);
        }
        Ok(Entry::Ids(ids))
    }
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Content,
}

/// A message's text; null is none.
#[derive(Default)]
struct Content {
    text: String,
    has_other_parts: bool,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Any(PhantomData::<Self>))
    }
}

impl<'de> Visitor<'de> for Any<Conversation> {
    type Value = Conversation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Conversation, A::Error> {
        let mut all = Conversation::default();
        while let Some(Message { role, content }) = list.next_element()? {
            all.messages += 1;
            all.has_other_parts |= content.has_other_parts;
            all.text += &role;
            all.text += ": ";
            all.text += &content.text;
            all.text.push('\n');
        }
        Ok(all)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData::<Self>))
    }
}

impl<'de> Visitor<'de> for Any<Content> {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_unit<E: Error>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content { text: text.to_owned(), has_other_parts: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(Part { kind, text }) = list.next_element()? {
            match text.filter(|_| kind == "text") {
                Some(text) => content.text += &text,
                None => content.has_other_parts = true,
            }
        }
        Ok(content)
    }
}

impl<'de> Deserialize<'de> for StopIsEmpty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData::<Self>)).map(Self)
    }
}

impl<'de> Visitor<'de> for Any<StopIsEmpty> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        Ok(text.is_empty())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let mut entries = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            entries += 1;
        }
        Ok(entries == 0)
    }
}
