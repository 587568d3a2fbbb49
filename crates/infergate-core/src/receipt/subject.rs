//! What a row of a verdict is about: a [`Subject`].

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::case::Case;

/// Longest name from elsewhere, bytes. A receipt is someone else's file.
const MAX_NAME_BYTES: usize = 200;

/// What a number or a verdict belongs to. In files it is its [`id`](Self::id): `decode/p128`, `bench:fib/20`, `model`,
/// `process`, `scenario:chat`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A case, a bench included.
    Case(Case),
    /// The model: what belongs to no case, such as the bytes of its weights.
    Model,
    /// The process that was measured.
    Process,
    /// A name from elsewhere: a server's scenario.
    Named(Name),
}

/// A name from elsewhere and where it comes from: `scenario:chat`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    source: String,
    name: String,
}

impl Name {
    /// A name given by `source`, for example `scenario`.
    ///
    /// # Errors
    /// A source that is not of lower-case letters, digits and dashes; a name that is empty, too long, or holds control
    /// characters.
    pub fn new(source: &str, name: &str) -> Result<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ensure!(
            !source.is_empty() && source.len() <= MAX_NAME_BYTES && source.chars().all(plain),
            "a name's source has lower-case letters, digits and dashes, for example scenario:chat"
        );
        ensure!(
            !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control),
            "a name has 1 to {MAX_NAME_BYTES} bytes and no control characters, for example scenario:chat"
        );
        Ok(Self { source: source.into(), name: name.into() })
    }

    /// Who gave the name: `scenario`.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The name itself: `chat`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Subject {
    /// The case, where it is one of ours.
    pub fn case(&self) -> Option<Case> {
        if let Self::Case(case) = self { Some(*case) } else { None }
    }

    /// How files spell it: as it is displayed, a bench with `bench:` in front.
    pub fn id(&self) -> String {
        self.case().map_or_else(|| self.to_string(), |case| case.id())
    }
}

impl From<Case> for Subject {
    fn from(case: Case) -> Self {
        Self::Case(case)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case(case) => case.fmt(f),
            Self::Model => f.write_str("model"),
            Self::Process => f.write_str("process"),
            Self::Named(Name { source, name }) => write!(f, "{source}:{name}"),
        }
    }
}

impl FromStr for Subject {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "model" => return Ok(Self::Model),
            "process" => return Ok(Self::Process),
            _ => {}
        }
        match text.split_once(':') {
            Some((source, name)) if source != "bench" => Ok(Self::Named(Name::new(source, name)?)),
            _ => text.parse().map(Self::Case),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.id())
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
