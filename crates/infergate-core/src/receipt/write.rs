//! Writing: a value becomes a file, the old one or the new one, never half of one.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::store::MAX_FILE_BYTES;

/// `document` as JSON: one field a line, lists on one line, a newline at the end. A float that is not finite becomes
/// `null`, the word for undefined.
///
/// # Errors
/// When a map's key is not text; no document here has one.
pub fn to_json<T: Serialize>(document: &T) -> Result<String> {
    let mut bytes = Vec::new();
    let formatter = FieldPerLine(PrettyFormatter::with_indent(b" "));
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    document.serialize(&mut serializer)?;
    bytes.push(b'\n');
    Ok(String::from_utf8(bytes)?)
}

/// Writes `document` to `path` through a temporary file beside it: the old file or the new one, never half of one, also
/// when the power fails. Missing folders are made. A new file gets the permissions the user's umask leaves, an old one keeps
/// its own.
///
/// # Errors
/// When `path` is something else than a regular file, the folder is read-only or the disk is full; nothing is left behind
/// then.
pub fn write_json<T: Serialize>(path: &Path, document: &T) -> Result<()> {
    let text = to_json(document)?;
    ensure!(
        text.len() as u64 <= MAX_FILE_BYTES,
        "{}: {} bytes are more than could be read again ({MAX_FILE_BYTES}); measure fewer cases, or for a shorter time",
        path.display(),
        text.len()
    );
    write_text(path, &text)
}

/// As [`write_json`], for text that is made already.
///
/// # Errors
/// As [`write_json`].
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let old = replaceable(path)?;
    let folder = folder_of(path);
    let write = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut beside = Beside::new(folder)?;
        beside.file.write_all(text.as_bytes())?;
        if let Some(old) = &old {
            beside.file.set_permissions(old.permissions())?;
        }
        beside.file.sync_all()?;
        beside.rename(path)
    };
    write().with_context(|| cannot(path))
}

/// Whether [`write_json`] could write `path` now. Minutes of measuring should not end at a file that cannot be written.
/// Nothing is changed or left behind: a file is made in the nearest folder that exists, and removed.
///
/// # Errors
/// As [`write_json`].
pub fn ensure_writable(path: &Path) -> Result<()> {
    replaceable(path)?;
    let nearest = folder_of(path).ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    Beside::new(nearest).map(drop).with_context(|| cannot(path))
}

/// What stands at `path` now and may be replaced: nothing, or a regular file.
fn replaceable(path: &Path) -> Result<Option<Metadata>> {
    let place = path.display();
    let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    ensure!(path.file_name().is_some() && !ends_as_folder, "{place}: cannot be written, it names no file; name one");
    match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => Ok(Some(old)),
        Ok(_) => {
            bail!("{place}: cannot be written, a folder, link or device of this name is there; name a regular file")
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| cannot(path)),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot(path: &Path) -> String {
    format!("{}: cannot be written; check the folder's permissions and the space left", path.display())
}

/// A new file in a folder, with the permissions the user's umask leaves. It is gone when it was not renamed.
struct Beside {
    path: PathBuf,
    file: File,
}

impl Beside {
    fn new(folder: &Path) -> io::Result<Self> {
        let mut number = 0_u32;
        loop {
            let path = folder.join(format!(".infergate-{}-{number}.tmp", process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                // Another thread's, or what a killed process of the same number left behind.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn rename(mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)?;
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Objects broken over lines, arrays kept on one: diffs stay readable and samples do not fill the screen.
struct FieldPerLine(PrettyFormatter<'static>);

impl Formatter for FieldPerLine {
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}
