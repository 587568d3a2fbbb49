//! Names for the constants in object files, so that a linker can order them too.
//!
//! The compiler's constants have no symbol, and one new panic message would move all that follow. Each section of constants gets a
//! hidden symbol named by its content; a section that is the same in base and head gets the same name there.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{LittleEndian as LE, SectionIndex};

use crate::code::readable;

const HEADER_BYTES: u64 = 64;
const SYMBOL_BYTES: u64 = 24;

/// What was named so far in the objects of one side: how often each content came.
#[derive(Debug, Default)]
pub struct Named {
    counts: HashMap<u64, usize>,
}

impl Named {
    /// The names of all sections of constants, those first that both sides have equally often.
    pub fn in_order(&self, other: &Self) -> Vec<String> {
        let mut keys: Vec<(&u64, &usize)> = self.counts.iter().collect();
        keys.sort_by_key(|(key, count)| (other.counts.get(*key) != Some(*count), *key));
        keys.into_iter().flat_map(|(key, count)| (1..=*count).map(|nth| name(*key, nth))).collect()
    }

    /// `object` with a symbol for each of its sections of constants; `None` where it has none, or is no object file that can hold them.
    pub fn name_all(&mut self, object: &[u8]) -> Option<Vec<u8>> {
        let header = FileHeader64::<LE>::parse(object).ok()?;
        let sections = header.sections(LE, object).ok()?;
        let symbols = sections.symbols(LE, object, elf::SHT_SYMTAB).ok()?;
        let is_wide = sections.iter().any(|section| section.sh_type(LE) == elf::SHT_SYMTAB_SHNDX);
        if symbols.is_empty() || is_wide {
            return None;
        }
        let found: Vec<(u16, String)> = sections
            .enumerate()
            .filter_map(|(index, _)| {
                let key = content(&sections, &symbols, index, object)?;
                let count = self.counts.entry(key).or_default();
                *count += 1;
                Some((u16::try_from(index.0).ok()?, name(key, *count)))
            })
            .collect();
        (!found.is_empty()).then(|| with_symbols(object, header, &sections, &symbols, &found)).flatten()
    }
}

fn name(key: u64, nth: usize) -> String {
    format!("infergate_constant_{key:016x}_{nth}")
}

/// A hash of what a section of constants holds, and of what it points to; `None` for other sections. The linker merges and sorts those
/// of texts and of numbers by itself.
fn content(
    sections: &SectionTable<FileHeader64<LE>>,
    symbols: &SymbolTable<FileHeader64<LE>>,
    index: SectionIndex,
    object: &[u8],
) -> Option<u64> {
    let section = sections.section(index).ok()?;
    let name = sections.section_name(LE, section).ok()?;
    let is_constant = section.sh_type(LE) == elf::SHT_PROGBITS
        && section.sh_size(LE) > 0
        && section.sh_flags(LE).0 & elf::SHF_MERGE.0 == 0
        && (name.starts_with(b".rodata") || name.starts_with(b".data.rel.ro"));
    if !is_constant {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (stem(name), section.sh_addralign(LE)).hash(&mut hasher);
    section.data(LE, object).ok()?.hash(&mut hasher);
    let of_it =
        sections.iter().filter(|other| other.sh_type(LE) == elf::SHT_RELA && other.sh_info(LE) as usize == index.0);
    for table in of_it {
        let (relocations, _) = table.rela(LE, object).ok()??;
        for relocation in relocations {
            let symbol = symbols.symbol(relocation.symbol(LE, false)?).ok()?;
            let target = symbol.name(LE, symbols.strings()).unwrap_or_default();
            let of_section = || {
                let place = sections.section(SectionIndex(symbol.st_shndx(LE).0.into())).ok()?;
                sections.section_name(LE, place).ok()
            };
            let target = if target.is_empty() { of_section().unwrap_or_default() } else { target };
            (relocation.r_offset(LE), relocation.r_type(LE, false).0, stem(target), relocation.r_addend(LE))
                .hash(&mut hasher);
        }
    }
    Some(hasher.finish())
}

/// A name without what differs between two checkouts: `.rodata..Lanon.0123.4` and a mangled name's hash.
fn stem(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    if let Some((before, _)) = text.split_once(".Lanon.") {
        return before.to_owned();
    }
    let (section, symbol) = text.split_at(text.find("_ZN").or_else(|| text.find("_R")).unwrap_or(0));
    format!("{section}{}", readable(symbol.split(".llvm.").next().unwrap_or_default().as_bytes()))
}

/// The object with its tables of symbols and of their names written again at its end.
fn with_symbols(
    object: &[u8],
    header: &FileHeader64<LE>,
    sections: &SectionTable<FileHeader64<LE>>,
    symbols: &SymbolTable<FileHeader64<LE>>,
    new: &[(u16, String)],
) -> Option<Vec<u8>> {
    let table = sections.section(symbols.section()).ok()?;
    let names = sections.section(symbols.string_section()).ok()?;
    let (mut entries, mut texts) = (table.data(LE, object).ok()?.to_vec(), names.data(LE, object).ok()?.to_vec());
    for (section, name) in new {
        let mut entry = [0; SYMBOL_BYTES as usize];
        entry[..4].copy_from_slice(&u32::try_from(texts.len()).ok()?.to_le_bytes());
        entry[4] = elf::STB_GLOBAL.0 << 4 | elf::STT_OBJECT.0;
        entry[5] = elf::STV_HIDDEN.0;
        entry[6..8].copy_from_slice(&section.to_le_bytes());
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
