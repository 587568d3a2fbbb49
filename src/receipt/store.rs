//! Reading, validating and writing: the one place where a file becomes a value, and a value a file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::{
    BASELINE_SCHEMA, Baseline, CALIBRATION_SCHEMA, Calibration, MEMORY_SCHEMA, MemoryReceipt, PAIRED_SCHEMA,
    PairedReceipt, RECEIPT_SCHEMA, Receipt, Verdict,
};

/// A file is refused beyond this size before it is read: a receipt holds a few hundred kilobytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

const NOT_JSON: &str = "not JSON; measure again, or restore the file from version control";

/// A file of either kind, for commands that take both.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// One run.
    Receipt(Box<Receipt>),
    /// Sessions over time.
    Baseline(Box<Baseline>),
}

/// Reads and validates a receipt.
///
/// # Errors
/// Unreadable, not JSON, of another or newer schema, or with samples that are missing, negative, not numbers or of the
/// wrong count.
pub fn read_receipt(path: &Path) -> Result<Receipt> {
    match read_receipt_or_baseline(path)? {
        Document::Receipt(receipt) => Ok(*receipt),
        Document::Baseline(_) => bail!("{}: is a baseline and a receipt is needed", path.display()),
    }
}

/// Reads and validates a baseline.
///
/// # Errors
/// As [`read_receipt`].
pub fn read_baseline(path: &Path) -> Result<Baseline> {
    match read_receipt_or_baseline(path)? {
        Document::Baseline(baseline) => Ok(*baseline),
        Document::Receipt(_) => {
            bail!("{}: is a receipt and a baseline is needed; make one with `cargo xtask bless`", path.display())
        }
    }
}

/// Reads and validates a receipt or a baseline, whichever it is.
///
/// # Errors
/// As [`read_receipt`].
pub fn read_receipt_or_baseline(path: &Path) -> Result<Document> {
    parse(&read_text(path)?).with_context(|| format!("{}: not a usable file", path.display()))
}

/// Reads and validates the receipt of a paired run.
///
/// # Errors
/// As [`read_receipt`].
pub fn read_paired(path: &Path) -> Result<PairedReceipt> {
    let receipt: PairedReceipt = read_as(path, PAIRED_SCHEMA)?;
    receipt.validate().with_context(|| format!("{}: not a usable file", path.display()))?;
    Ok(receipt)
}

/// Reads and validates a calibration.
///
/// # Errors
/// As [`read_receipt`].
pub fn read_calibration(path: &Path) -> Result<Calibration> {
    let calibration: Calibration = read_as(path, CALIBRATION_SCHEMA)?;
    calibration.validate().with_context(|| format!("{}: not a usable file", path.display()))?;
    Ok(calibration)
}

/// Reads and validates the receipt of a memory phase.
///
/// # Errors
/// As [`read_receipt`].
pub fn read_memory(path: &Path) -> Result<MemoryReceipt> {
    let receipt: MemoryReceipt = read_as(path, MEMORY_SCHEMA)?;
    receipt.validate().with_context(|| format!("{}: not a usable file", path.display()))?;
    Ok(receipt)
}

fn read_as<T: DeserializeOwned>(path: &Path, wanted: &str) -> Result<T> {
    let read = || -> Result<T> {
        let value: Value = serde_json::from_str(&read_text(path)?).context(NOT_JSON)?;
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or("none");
        ensure!(schema == wanted, "its schema is {schema} and {wanted} is needed; update infergate, or measure again");
        typed(value)
    };
    read().with_context(|| format!("{}: not a usable file", path.display()))
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

fn parse(text: &str) -> Result<Document> {
    let value: Value = serde_json::from_str(text).context(NOT_JSON)?;
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or("none");
    match schema {
        RECEIPT_SCHEMA => {
            let receipt: Receipt = typed(value)?;
            receipt.validate()?;
            Ok(Document::Receipt(Box::new(receipt)))
        }
        BASELINE_SCHEMA => {
            let baseline: Baseline = typed(value)?;
            baseline.validate()?;
            Ok(Document::Baseline(Box::new(baseline)))
        }
        newer if newer.starts_with("infergate.") => bail!(
            "schema {newer} is not one this version reads ({RECEIPT_SCHEMA}, {BASELINE_SCHEMA}); update infergate, or measure again"
        ),
        _ => bail!("it has no infergate schema; expected {RECEIPT_SCHEMA} or {BASELINE_SCHEMA}"),
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    // The message of serde names the field; a negative or missing number shows as a wrong type.
    serde_json::from_value(value).context("a field is missing or not of its type; samples are non-negative integers")
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

/// The JSON Schema of each format, with its file's name.
pub fn json_schemas() -> Vec<(&'static str, String)> {
    fn schema<T: JsonSchema>() -> String {
        let schema = serde_json::to_string_pretty(&schema_for!(T)).expect("a schema is plain JSON");
        schema + "\n"
    }
    vec![
        ("receipt-1.schema.json", schema::<Receipt>()),
        ("baseline-1.schema.json", schema::<Baseline>()),
        ("verdict-1.schema.json", schema::<Verdict>()),
        ("paired-1.schema.json", schema::<PairedReceipt>()),
        ("calibration-1.schema.json", schema::<Calibration>()),
        ("memory-1.schema.json", schema::<MemoryReceipt>()),
    ]
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
