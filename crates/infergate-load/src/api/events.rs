//! The event-stream parser: from bytes, split anywhere, to whole events.
//!
//! Lines end in LF, CR LF or CR; an empty line ends an event; `data:` may have a space behind it, and several lines of it are one text
//! with line ends between; a line that is an object is an event of its own; comments, ids and unknown fields are passed over.
//! Bytes are not text yet: an event may be split within a character.

use infergate_core::load::{Failure, FailureClass};
use memchr::memchr2;

use crate::api::failures::failure;

type Result<T> = std::result::Result<T, Failure>;

/// The largest event that is kept, bytes. An event of a completion holds a few hundred.
pub const MAX_EVENT_BYTES: usize = 1 << 20;
/// A byte order mark may stand before the first line.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a> {
    /// Its `data` lines and those of an `error` field, joined.
    pub data: &'a [u8],
    /// Its name was `error`, or it has a field of that name.
    pub is_error: bool,
}

/// Splits a stream of bytes into events.
#[derive(Debug, Default)]
pub struct Events {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// What the event holds so far, a line end behind each line.
    data: Vec<u8>,
    is_error: bool,
    /// The last byte was CR: an LF that follows belongs to it.
    after_cr: bool,
    /// A line was seen, so no byte order mark can come any more.
    begun: bool,
}

impl Events {
    /// Takes the next bytes and hands each event that they complete to `found`.
    ///
    /// # Errors
    /// When an event grows beyond [`MAX_EVENT_BYTES`]; or what `found` returns. The stream cannot be gone on with then.
    pub fn push(&mut self, mut bytes: &[u8], mut found: impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, after_cr) = (&bytes[..end], self.after_cr);
            self.after_cr = bytes[end] == b'\r';
            if !(after_cr && bytes[0] == b'\n') {
                self.keep(line)?;
                let whole = std::mem::take(&mut self.line);
                self.take_line(&whole, &mut found)?;
                self.line = whole;
                self.line.clear();
            }
            bytes = &bytes[end + 1..];
        }
        self.after_cr &= bytes.is_empty();
        self.keep(bytes)
    }

    /// The stream ended, and with it the last line and the last event.
    pub fn finish(&mut self, mut found: impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut found)?;
        }
        self.end_event(&mut found)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<()> {
        if self.line.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(too_large());
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], found: &mut impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let line = if self.begun { line } else { line.strip_prefix(BOM).unwrap_or(line) };
        self.begun = true;
        if line.is_empty() {
            return self.end_event(found);
        }
        // Some servers send errors without a field's name.
        if line.starts_with(b"{") && line.ends_with(b"}") {
            self.end_event(found)?;
            return found(Event { data: line, is_error: false });
        }
        // llama.cpp sent errors in a field of that name.
        let error = field(line, b"error");
        self.is_error |= error.is_some();
        if let Some(data) = field(line, b"data").or(error) {
            if self.data.len() + data.len() >= MAX_EVENT_BYTES {
                return Err(too_large());
            }
            self.data.extend_from_slice(data);
            self.data.push(b'\n');
        } else if let Some(name) = field(line, b"event") {
            self.is_error |= name == b"error";
        }
        Ok(())
    }

    fn end_event(&mut self, found: &mut impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let data = self.data.strip_suffix(b"\n");
        let outcome = match data.is_some() || self.is_error {
            true => found(Event { data: data.unwrap_or_default(), is_error: self.is_error }),
            false => Ok(()),
        };
        self.data.clear();
        self.is_error = false;
        outcome
    }
}

fn too_large() -> Failure {
    let detail = format!("an event is larger than {MAX_EVENT_BYTES} bytes, which no completion chunk is");
    failure(FailureClass::MalformedStream, detail)
}

/// What stands behind `name:` and one space in `line`; `None` where it is another field.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest.strip_prefix(b":") {
        Some(value) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        // A field without a colon has an empty value.
        None => rest.is_empty().then_some(rest),
    }
}
