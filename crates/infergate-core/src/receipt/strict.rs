//! A file's JSON, read strictly: looked at as [`crate::json`] does before a value is made of it.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::json::{self, Rules};
use crate::printable::printable_within;

/// What the JSON of a file obeys. The longest text is a frame of a call stack with all its type parameters.
pub const RULES: Rules = Rules { text_bytes: 1 << 16, list_entries: 10_000_000, object_keys: 10_000 };

const NOT_JSON: &str = "not JSON; measure again, or restore the file from version control";
const EDITED: &str = "no file of ours looks like this; restore it from version control, or measure again";

/// The file's schema; `none` where it says none.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// The schema that `text` names, after checking all of it: JSON, no key twice in an object, nesting at most 128 deep, no
/// text, list or object that is longer than any of ours, no more memory than its length allows.
///
/// # Errors
/// The first of these that does not hold, with line and column.
pub(super) fn schema_of(text: &str) -> Result<String> {
    json::check(text, RULES).map_err(|error| {
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
