//! What a row of a verdict is about: a [`Subject`].

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, ensure};

use crate::case::{BenchName, Case};

/// Longest name of a level, bytes. A receipt is someone else's file.
const MAX_NAME_BYTES: usize = 200;

/// What stands in front of a level's name where it is written.
const LOAD_PREFIX: &str = "load:";

/// What a number or a verdict belongs to. In files it is its [`id`](Self::id): `decode/p128`, `bench:fib/20`, `model`,
/// `load:chat/8 users`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A case, a bench included.
    Case(Case),
    /// The model: what belongs to no case, such as the bytes of its weights.
    Model,
    /// A level of a load: `chat/8 users`.
    Load(String),
}

impl Subject {
    /// The case, where it is one of ours.
    pub fn case(&self) -> Option<Case> {
        if let Self::Case(case) = self { Some(*case) } else { None }
    }

    /// What a person calls so; what is nothing of ours is a bench. A bench that is called as something of ours has `bench:` in front.
    ///
    /// # Errors
    /// What begins like a case of ours and is none; what no bench can be called.
    pub fn named(text: &str) -> Result<Self> {
        let is_id = ["bench:", "prefill/", "decode/", "generate/"].iter().any(|begin| text.starts_with(begin));
        match text.parse() {
            Err(_) if !is_id => Ok(Case::Bench(BenchName::new(text)?).into()),
            parsed => parsed,
        }
    }

    /// As a person calls it, and [`named`](Self::named) finds it; never what looks like a flag.
    pub fn spelled(&self) -> String {
        let name = self.to_string();
        let is_found = !name.starts_with('-') && Self::named(&name).is_ok_and(|named| named == *self);
        if is_found { name } else { self.id() }
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
            Self::Load(name) => write!(f, "{LOAD_PREFIX}{name}"),
        }
    }
}

impl FromStr for Subject {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "model" {
            return Ok(Self::Model);
        }
        let Some(name) = text.strip_prefix(LOAD_PREFIX) else { return text.parse().map(Self::Case) };
        let is_name = name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
        ensure!(is_name, "a level's name has at most {MAX_NAME_BYTES} bytes and no control characters");
        Ok(Self::Load(name.into()))
    }
}

crate::serde_as_text!(Subject, Subject::id);
