//! Reading and validating: the one place where a file becomes a value.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use super::{MEMORY_SCHEMA, MemoryReceipt, RECEIPT_SCHEMA, Receipt, strict};
use crate::text_file::read_text;

/// A file is refused beyond this size before it is read: a receipt holds a few hundred kilobytes, a calibration of many
/// gates a few megabytes.
pub(super) const MAX_FILE_BYTES: u64 = 128 << 20;

/// One of the project's file formats.
pub trait Format: DeserializeOwned {
    /// The name in its `schema` field.
    const SCHEMA: &'static str;

    /// Refuses a value that breaks a rule of the format.
    ///
    /// # Errors
    /// The first thing that is missing, of the wrong count, zero, or edited.
    fn check(&self) -> Result<()>;
}

/// Makes a file format of each type, by the name in its `schema` field: the rules are those of the type's own `validate`.
#[macro_export]
macro_rules! formats {
    ($($kind:ty: $schema:expr),+ $(,)?) => {$(
        impl $crate::receipt::Format for $kind {
            const SCHEMA: &'static str = $schema;

            fn check(&self) -> ::anyhow::Result<()> {
                self.validate()
            }
        }
    )+};
}

formats!(Receipt: RECEIPT_SCHEMA, MemoryReceipt: MEMORY_SCHEMA);

/// Reads a file of the format `T` and checks it.
///
/// # Errors
/// Unreadable, not JSON, of another or newer schema, or with values that break the format's rules.
pub fn read<T: Format>(path: &Path) -> Result<T> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    let read = || -> Result<T> {
        let schema = strict::schema_of(&text)?;
        ensure!(
            schema == T::SCHEMA,
            "its schema is {schema} and {} is needed; give another file, update infergate, or measure again",
            T::SCHEMA
        );
        let document: T = strict::typed(&text)?;
        document.check()?;
        Ok(document)
    };
    read().with_context(|| format!("{}: not a usable file", path.display()))
}

/// The name in the `schema` field of the file at `path`; `none` where it has none.
///
/// # Errors
/// Unreadable or not JSON.
pub fn schema_of(path: &Path) -> Result<String> {
    let text = read_text(path, MAX_FILE_BYTES)?;
    strict::schema_of(&text).with_context(|| format!("{}: not a usable file", path.display()))
}
