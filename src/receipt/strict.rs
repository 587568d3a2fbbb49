//! JSON of others, read strictly: nothing twice, nothing endless, checked before a value is made of it.

use std::collections::HashSet;
use std::fmt;

use anyhow::{Context, Result};
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::printable::printable_within;

/// The longest text in a file, bytes: a frame of a call stack with all its type parameters is the longest there is.
const MAX_TEXT_BYTES: usize = 1 << 16;
/// The longest list, entries.
const MAX_LIST: usize = 10_000_000;
/// The most keys of an object.
const MAX_KEYS: usize = 10_000;

const NOT_JSON: &str = "not JSON; measure again, or restore the file from version control";
const EDITED: &str = "no file of ours looks like this; restore it from version control, or measure again";

/// The file's schema; `none` where it says none.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// The schema that `text` names, after checking all of it: JSON, no key twice in an object, nesting at most 128 deep, no
/// text, list or object that is longer than any of ours.
///
/// # Errors
/// The first of these that does not hold, with line and column.
pub(super) fn schema_of(text: &str) -> Result<String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let checked = Checked.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    checked.map_err(|error| {
        let why = if error.is_data() { EDITED } else { NOT_JSON };
        anyhow::Error::new(error).context(why)
    })?;
    Ok(serde_json::from_str::<Head>(text)
        .map_or_else(|_| "none".to_owned(), |head| printable_within(&head.schema, 60).into_owned()))
}

/// A value of the checked `text`.
///
/// # Errors
/// The field that is missing or of another type, with line and column.
pub(super) fn typed<T: DeserializeOwned>(text: &str) -> Result<T> {
    // The message of serde names the field; a negative or missing number shows as a wrong type.
    serde_json::from_str(text).context("a field is missing or not of its type; samples are non-negative integers")
}

/// Walks over any value and keeps nothing of it.
#[derive(Clone, Copy)]
struct Checked;

impl<'de> DeserializeSeed<'de> for Checked {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if text.len() > MAX_TEXT_BYTES {
            let bytes = text.len();
            return Err(E::custom(format_args!(
                "a text of {bytes} bytes is too long, at most {MAX_TEXT_BYTES} are read"
            )));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut entries = 0;
        while list.next_element_seed(self)?.is_some() {
            entries += 1;
            if entries > MAX_LIST {
                return Err(A::Error::custom(format_args!("a list is too long, at most {MAX_LIST} entries are read")));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = object.next_key::<String>()? {
            self.visit_str::<A::Error>(&key)?;
            if seen.len() == MAX_KEYS {
                return Err(A::Error::custom(format_args!("an object has too many keys, at most {MAX_KEYS} are read")));
            }
            if let Some(key) = seen.replace(key) {
                return Err(A::Error::custom(format_args!("key '{key}' is there twice")));
            }
            object.next_value_seed(self)?;
        }
        Ok(())
    }
}
