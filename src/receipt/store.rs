//! Reading, validating and writing: the one place where a file becomes a value, and a value a file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::{MEMORY_SCHEMA, MemoryReceipt, RECEIPT_SCHEMA, Receipt};

/// A file is refused beyond this size before it is read: a receipt holds a few hundred kilobytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

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

impl Format for Receipt {
    const SCHEMA: &'static str = RECEIPT_SCHEMA;

    fn check(&self) -> Result<()> {
        self.validate()
    }
}

impl Format for MemoryReceipt {
    const SCHEMA: &'static str = MEMORY_SCHEMA;

    fn check(&self) -> Result<()> {
        self.validate()
    }
}

/// Reads a file of the format `T` and checks it.
///
/// # Errors
/// Unreadable, not JSON, of another or newer schema, or with values that break the format's rules.
pub fn read<T: Format>(path: &Path) -> Result<T> {
    let text = read_text(path)?;
    let read = || -> Result<T> {
        let value = parse(&text)?;
        let schema = schema_name(&value);
        ensure!(
            schema == T::SCHEMA,
            "its schema is {schema} and {} is needed; give another file, update infergate, or measure again",
            T::SCHEMA
        );
        // The message of serde names the field; a negative or missing number shows as a wrong type.
        let document: T = serde_json::from_value(value)
            .context("a field is missing or not of its type; samples are non-negative integers")?;
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
    let text = read_text(path)?;
    let value = parse(&text).with_context(|| format!("{}: not a usable file", path.display()))?;
    Ok(schema_name(&value).to_owned())
}

fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("not JSON; measure again, or restore the file from version control")
}

fn schema_name(value: &Value) -> &str {
    value.get("schema").and_then(Value::as_str).unwrap_or("none")
}

fn read_text(path: &Path) -> Result<String> {
    let place = path.display();
    let file = fs::File::open(path).with_context(|| format!("{place}: cannot be read"))?;
    let size = file.metadata().with_context(|| format!("{place}: cannot be read"))?.len();
    ensure!(size <= MAX_FILE_BYTES, "{place}: {size} bytes are too many for a receipt; is this another file?");
    let mut text = String::new();
    // A pipe or a device has no size beforehand.
    let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
    read.with_context(|| format!("{place}: cannot be read as text; is this another file?"))?;
    Ok(text)
}

/// `document` as JSON: one field a line, lists on one line, a newline at the end. A float that is not finite becomes
/// `null`, the word for undefined.
///
/// # Errors
/// When a map's key is not text; no document here has one.
pub fn to_json<T: Serialize>(document: &T) -> Result<String> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, FieldPerLine::default());
    document.serialize(&mut serializer)?;
    bytes.push(b'\n');
    Ok(String::from_utf8(bytes)?)
}

/// Writes `document` to `path`: temporary file beside it, fsync, rename. The old file or the new one, never half of one.
/// Missing folders are made.
///
/// # Errors
/// When the folder is read-only or the disk is full; nothing is left behind then.
pub fn write_json<T: Serialize>(path: &Path, document: &T) -> Result<()> {
    let text = to_json(document)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        set_usual_permissions(file.as_file())?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| {
        format!("{}: cannot be written; check the folder's permissions and the space left", path.display())
    })
}

/// Whether [`write_json`] could write `path` now: its folder is made and a file in it opened and removed. Minutes of
/// measuring should not end at a file that cannot be written.
///
/// # Errors
/// As [`write_json`].
pub fn ensure_writable(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let probe = fs::create_dir_all(folder).and_then(|()| tempfile::NamedTempFile::new_in(folder));
    let is_folder = path.is_dir();
    probe
        .map(drop)
        .and_then(|()| if is_folder { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(()) })
        .with_context(|| {
            format!("{}: cannot be written; check the folder's permissions and the space left", path.display())
        })
}

/// A temporary file is private to its owner; a receipt is as readable as any other file.
fn set_usual_permissions(file: &fs::File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Objects broken over lines, arrays kept on one: diffs stay readable and samples do not fill the screen.
#[derive(Default)]
struct FieldPerLine {
    depth: usize,
    has_value: bool,
}

impl FieldPerLine {
    fn newline<W: io::Write + ?Sized>(&self, writer: &mut W) -> io::Result<()> {
        write!(writer, "\n{:width$}", "", width = self.depth)
    }
}

impl Formatter for FieldPerLine {
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(b"{")
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.newline(writer)?;
        }
        writer.write_all(b"}")
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.newline(writer)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: io::Write + ?Sized>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}
