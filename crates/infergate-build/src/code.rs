//! What changed between two executables, by their machine code: nothing, or these functions.
//!
//! It is looked at before anything is timed and takes seconds, less where nothing changed. What cannot be read or understood
//! counts as changed: to call changed code the same would let a regression pass. So whether everything is the same is asked of
//! the bytes that are loaded, not of any reading of them; see [`loaded`]. Which functions changed is read from them, for
//! x86-64; see [`changed`].

pub mod changed;
mod content;
mod data;
pub mod functions;
pub mod image;
pub mod loaded;
mod sides;

use std::path::Path;

use anyhow::{Context, Result};
use infergate_core::text_file::read_bytes;

pub use changed::Changed;
pub use functions::readable;
use image::Image;
pub use sides::ChangedFunction;

/// No program is larger. A file can be, and take no room on its disk.
const MAX_PROGRAM_BYTES: u64 = 2 << 30;

/// The bytes of an executable.
pub fn read(program: &Path) -> Result<Vec<u8>> {
    read_bytes(program, MAX_PROGRAM_BYTES)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// They load the same bytes, but for what [`loaded`] names.
    Same,
    /// They do not. What differs; `None` where this machine's instructions cannot be read, or the executable does not say where
    /// its functions are.
    Differ(Option<Changed>),
}

/// Compares two executables, given as the bytes of their files.
pub fn compare(base: &[u8], head: &[u8]) -> Result<Comparison> {
    let parse = |name, bytes| Image::parse(bytes).context(name);
    let (base, head) = (parse("base", base)?, parse("head", head)?);
    if loaded::is_same(&base, &head) {
        return Ok(Comparison::Same);
    }
    let can_be_read = [&base, &head].iter().all(|image| image.is_x86_64() && !image.symbols.is_empty());
    Ok(Comparison::Differ(can_be_read.then(|| changed::between(&base, &head))))
}
