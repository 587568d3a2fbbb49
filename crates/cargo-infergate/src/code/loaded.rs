//! Whether two executables load the same bytes at the same places.
//!
//! What may differ is what no instruction does anything with but print it: the build id, and line and column of a panic's
//! location. A line number in a location is what is left of an edited comment, and nothing else moves. Everything else counts:
//! code, constants, tables, initial values, what the loader is asked for.

use std::ops::Range;

use super::image::{Image, Pointer, Section};

pub fn is_same(base: &Image, head: &Image) -> bool {
    base.header == head.header
        && base.sections.len() == head.sections.len()
        && base.pointers == head.pointers
        && base.sections.iter().zip(&head.sections).all(|(was, is)| is_same_section(base, was, head, is))
}

fn is_same_section(base: &Image, was: &Section, head: &Image, is: &Section) -> bool {
    let place = |section: &Section| (section.address, section.size, section.flags, section.bytes.len());
    if was.name != is.name || place(was) != place(is) {
        return false;
    }
    if was.bytes == is.bytes || was.name == b".note.gnu.build-id" {
        return true;
    }
    if was.is_code() {
        return false;
    }
    let different = was.bytes.iter().zip(is.bytes).enumerate().filter(|(_, (was, is))| was != is);
    let mut allowed: Range<u64> = 0..0;
    for (at, _) in different {
        let address = was.address.saturating_add(at as u64);
        if allowed.contains(&address) {
            continue;
        }
        // A location begins at a multiple of eight, and line and column are its last eight bytes.
        let start = (address & !7).saturating_sub(LINE);
        let same_file = location(base, start).zip(location(head, start)).is_some_and(|(was, is)| was == is);
        if !same_file {
            return false;
        }
        allowed = start.saturating_add(LINE)..start.saturating_add(LOCATION);
    }
    true
}

/// Bytes of a `core::panic::Location`: where the name of a file is, its length, line, column.
pub const LOCATION: u64 = 24;

/// Where line and column begin in it.
pub const LINE: u64 = 16;

/// No path of a source file is longer.
const MAX_PATH_BYTES: u64 = 4096;

/// The source file that the panic location at `start` names; `None` where there is none. The compiler gives a location no name of
/// its own, so a static of the program's that looks like one is none.
pub fn location<'data>(image: &Image<'data>, start: u64) -> Option<&'data [u8]> {
    let Some(Pointer::To(file)) = image.pointers.get(&start) else { return None };
    if image.is_named(start) {
        return None;
    }
    // Nothing else of it is an address.
    if image.pointers.range(start.saturating_add(1)..start.saturating_add(LOCATION)).next().is_some() {
        return None;
    }
    let bytes = image.bytes(start, LOCATION)?;
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let bytes_of_file = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    if bytes_of_file > MAX_PATH_BYTES || word(16)? == 0 || word(20)? == 0 {
        return None;
    }
    let name = image.bytes(*file, bytes_of_file)?;
    let is_text =
        name.ends_with(b".rs") && std::str::from_utf8(name).is_ok_and(|text| !text.contains(char::is_control));
    is_text.then_some(name)
}
