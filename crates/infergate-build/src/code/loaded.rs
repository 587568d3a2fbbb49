//! Whether two executables load the same bytes at the same places.
//!
//! What may differ is what no instruction does anything with but print it: the build id, and line and column of a panic's
//! location. A line number in a location is what is left of an edited comment, and nothing else moves. Everything else counts:
//! code, constants, tables, initial values, what the loader is asked for.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

use super::functions;
use super::image::{Image, Pointer, Section};

pub fn is_same(base: &Image, head: &Image) -> bool {
    let starts = OnceCell::new();
    // Where it is the same program, head's are the same ones.
    let is_start = |address: u64| starts.get_or_init(|| taken(base)).contains(&address);
    base.header == head.header
        && base.sections.len() == head.sections.len()
        && base.pointers == head.pointers
        && base.sections.iter().zip(&head.sections).all(|(was, is)| is_same_section(base, was, head, is, &is_start))
}

/// Where something begins that code refers to: a row of a table that looks like a location is none. Nothing where instructions cannot
/// be read.
fn taken(image: &Image) -> HashSet<u64> {
    if !image.is_x86_64() {
        return HashSet::new();
    }
    functions::taken(image, &functions::all(image)).collect()
}

fn is_same_section(base: &Image, was: &Section, head: &Image, is: &Section, is_start: &dyn Fn(u64) -> bool) -> bool {
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
        if !same_file || !is_start(start) {
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
/// its own, so a static of the program's that looks like one is none, and neither is a row between rows of other texts.
pub fn location<'data>(image: &Image<'data>, start: u64) -> Option<&'data [u8]> {
    let is_source = |name: &&[u8]| name.ends_with(b".rs");
    let name = row(image, start).filter(is_source)?;
    let beside = [start.checked_sub(LOCATION), start.checked_add(LOCATION)];
    let is_in_table = beside.into_iter().flatten().filter_map(|at| row(image, at)).any(|name| !is_source(&name));
    (!is_in_table && !image.is_named(start)).then_some(name)
}

/// The text in what may be a text and two numbers, as a location is.
fn row<'data>(image: &Image<'data>, start: u64) -> Option<&'data [u8]> {
    let Some(Pointer::To(text)) = image.pointers.get(&start) else { return None };
    // Nothing else of it is an address.
    if image.pointers.range(start.saturating_add(1)..start.saturating_add(LOCATION)).next().is_some() {
        return None;
    }
    let bytes = image.bytes(start, LOCATION)?;
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let bytes_of_text = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    if bytes_of_text > MAX_PATH_BYTES || word(16)? == 0 || word(20)? == 0 {
        return None;
    }
    let text = image.bytes(*text, bytes_of_text)?;
    std::str::from_utf8(text).is_ok_and(|text| !text.contains(char::is_control)).then_some(text)
}
