//! Names for the constants in object files, so that a linker can order them too.
//!
//! The compiler's constants have no symbol, and one new panic message would move all that follow. Each section of constants gets a
//! hidden symbol named by its content; a section that is the same in base and head gets the same name there.

use std::collections::HashMap;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, SymbolTable};

use crate::code::sides::Linked;
use crate::code::units::Kind;

const HEADER_BYTES: u64 = 64;
const SYMBOL_BYTES: u64 = 24;

/// The sections of constants of one side.
#[derive(Debug, Default)]
pub struct ConstantNames {
    /// The number of sections with each content.
    counts: HashMap<u64, usize>,
    /// By object file: the number of a section, and its name.
    sections: HashMap<usize, Vec<(usize, String)>>,
}

impl ConstantNames {
    /// Of those that the linker neither merges nor sorts.
    pub fn of(side: &Linked) -> Self {
        let mut names = Self::default();
        for (unit, content) in side.units.all.iter().zip(&side.hashes) {
            if unit.kind == (Kind::Constant { is_merged: false }) {
                let count = names.counts.entry(*content).or_default();
                *count += 1;
                let (object, section) = unit.section;
                names.sections.entry(object).or_default().push((section, symbol_name(*content, *count)));
            }
        }
        names
    }

    /// All names, those first whose content both sides have equally often.
    pub fn link_order(&self, other: &Self) -> Vec<String> {
        let mut contents: Vec<(&u64, &usize)> = self.counts.iter().collect();
        contents.sort_by_key(|(content, count)| (other.counts.get(*content) != Some(*count), *content));
        contents.into_iter().flat_map(|(content, count)| (1..=*count).map(|nth| symbol_name(*content, nth))).collect()
    }

    /// The object file of that number with a symbol for each of its sections of constants; `None` if it has none, no symbols, or too many
    /// sections.
    pub fn with_names(&self, number: usize, object: &[u8]) -> Option<Vec<u8>> {
        let header = FileHeader64::<LE>::parse(object).ok()?;
        let sections = header.sections(LE, object).ok()?;
        let symbols = sections.symbols(LE, object, elf::SHT_SYMTAB).ok()?;
        let is_wide = sections.iter().any(|section| section.sh_type(LE) == elf::SHT_SYMTAB_SHNDX);
        if symbols.is_empty() || is_wide {
            return None;
        }
        with_symbols(object, header, &sections, &symbols, self.sections.get(&number)?)
    }
}

fn symbol_name(content: u64, nth: usize) -> String {
    format!("infergate_constant_{content:016x}_{nth}")
}

/// The object with its tables of symbols and of their names written again at its end.
fn with_symbols(
    object: &[u8],
    header: &FileHeader64<LE>,
    sections: &SectionTable<FileHeader64<LE>>,
    symbols: &SymbolTable<FileHeader64<LE>>,
    new: &[(usize, String)],
) -> Option<Vec<u8>> {
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
