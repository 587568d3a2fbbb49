//! Files that others wrote: receipts, configuration, prompts, programs. Limits come before reading.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The text of the regular file `path`, of at most `max_bytes`.
///
/// # Errors
/// A file that is missing, is a folder, pipe or device (which is not waited for), is too large or not UTF-8; each with the
/// path and in one line.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String> {
    let text = String::from_utf8(read_bytes(path, max_bytes)?).ok();
    text.with_context(|| format!("{}: cannot be read as text; is this another file?", path.display()))
}

/// As [`read_text`], of a file that need not be text.
///
/// # Errors
/// As [`read_text`], but for UTF-8.
pub fn read_bytes(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let place = path.display();
    let cannot = || format!("{place}: cannot be read");
    // Before it is opened: a pipe without a writer would be waited for.
    let is_file = fs::metadata(path).with_context(cannot)?.is_file();
    ensure!(is_file, "{place}: cannot be read, it is no regular file; copy what it gives into one");
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(max_bytes + 1).read_to_end(&mut bytes));
    read.with_context(cannot)?;
    ensure!(bytes.len() as u64 <= max_bytes, "{place}: has more than {max_bytes} bytes; is this another file?");
    Ok(bytes)
}
