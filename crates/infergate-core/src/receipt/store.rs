//! Reading: the one place where a file becomes a value.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{MEMORY_SCHEMA, MemoryReceipt, RECEIPT_SCHEMA, Receipt};
use crate::text_file::read_text;

/// A file is refused beyond this size before it is read: a receipt holds a few hundred kilobytes, a calibration of many
/// gates a few megabytes.
pub(super) const MAX_FILE_BYTES: u64 = 128 << 20;

/// One of the project's file formats.
pub trait Format: DeserializeOwned {
    /// The name in its `schema` field.
    const SCHEMA: &'static str;

    /// Refuses a value that nothing can be judged by.
    ///
    /// # Errors
    /// The first thing that is missing or contradicts itself.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl Format for Receipt {
    const SCHEMA: &'static str = RECEIPT_SCHEMA;
}

impl Format for MemoryReceipt {
    const SCHEMA: &'static str = MEMORY_SCHEMA;

    fn check(&self) -> Result<()> {
        self.memory.validate()
    }
}

/// Reads a file of the format `T` and checks it.
///
/// # Errors
/// Unreadable, not JSON, of another schema, or with values that nothing can be judged by.
pub fn read<T: Format>(path: &Path) -> Result<T> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    parse(&text).with_context(|| format!("{}: not a usable file", path.display()))
}

/// As [`read`], of the file's text.
///
/// # Errors
/// As [`read`].
pub fn parse<T: Format>(text: &str) -> Result<T> {
    let schema = schema(text)?;
    ensure!(
        schema == T::SCHEMA,
        "its schema is {schema} and {} is needed; give another file, update infergate, or measure again",
        T::SCHEMA
    );
    // The message of serde names the field.
    let document: T = serde_json::from_str(text).context("a field is missing or not of its type; measure again")?;
    document.check()?;
    Ok(document)
}

/// The name in the `schema` field of the file at `path`; `none` where it has none.
///
/// # Errors
/// Unreadable or not JSON.
pub fn schema_of(path: &Path) -> Result<String> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    schema(&text).with_context(|| format!("{}: not a usable file", path.display()))
}

fn schema(text: &str) -> Result<String> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    match serde_json::from_str::<Head>(text) {
        Ok(head) => Ok(head.schema),
        Err(error) if error.is_data() => Ok("none".into()),
        Err(error) => Err(error).context("not JSON; measure again, or restore the file from version control"),
    }
}
