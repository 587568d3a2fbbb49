//! Symbols for sections of object files, so that a linker can place each of them.
//!
//! The compiler's constants have no symbol, and functions share theirs with copies in other object files. These symbols are hidden, and no
//! functions, so nothing else of the program changes.

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader};

const HEADER_BYTES: u64 = 64;
const SYMBOL_BYTES: u64 = 24;

/// The object file with these symbols of sections: its tables of symbols and of their names are written again at its end. `None` if it has no
/// symbols, or too many sections.
pub fn with_symbols(object: &[u8], new: &[(usize, String)]) -> Option<Vec<u8>> {
    let header = FileHeader64::<LE>::parse(object).ok()?;
    let sections = header.sections(LE, object).ok()?;
    let symbols = sections.symbols(LE, object, elf::SHT_SYMTAB).ok()?;
    let is_wide = sections.iter().any(|section| section.sh_type(LE) == elf::SHT_SYMTAB_SHNDX);
    if symbols.is_empty() || is_wide {
        return None;
    }
    let table = sections.section(symbols.section()).ok()?;
    let names = sections.section(symbols.string_section()).ok()?;
    let (mut entries, mut texts) = (table.data(LE, object).ok()?.to_vec(), names.data(LE, object).ok()?.to_vec());
    for (section, name) in new {
        let mut entry = [0; SYMBOL_BYTES as usize];
        entry[..4].copy_from_slice(&u32::try_from(texts.len()).ok()?.to_le_bytes());
        entry[4] = elf::STB_GLOBAL.0 << 4 | elf::STT_OBJECT.0;
        entry[5] = elf::STV_HIDDEN.0;
        entry[6..8].copy_from_slice(&u16::try_from(*section).ok()?.to_le_bytes());
        entries.extend(entry);
        texts.extend(name.bytes().chain([0]));
    }
    let mut written = object.to_vec();
    let first: u64 = header.e_shoff.get(LE);
    for (index, bytes) in [(symbols.section(), entries), (symbols.string_section(), texts)] {
        written.resize(written.len().next_multiple_of(8), 0);
        let at = usize::try_from(first + HEADER_BYTES * index.0 as u64).ok()?;
        // Offset and size in its header.
        let (offset, size) = (written.len() as u64, bytes.len() as u64);
        written.get_mut(at + 24..at + 32)?.copy_from_slice(&offset.to_le_bytes());
        written.get_mut(at + 32..at + 40)?.copy_from_slice(&size.to_le_bytes());
        written.extend(bytes);
    }
    Some(written)
}
