//! Symbols for sections of object files, so that a linker can place each of them.
//!
//! The compiler's constants have no symbol, and functions share theirs with copies in other object files. The new symbols are hidden and
//! not functions, so nothing else of the program changes.

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader};

const HEADER_BYTES: u64 = 64;
const SYMBOL_BYTES: u64 = 24;

/// The object file with these symbols of sections: its tables of symbols and of their names are written again at its end. `None` if it has
/// no symbols.
pub fn with_symbols(object: &[u8], new: &[(usize, String)]) -> Option<Vec<u8>> {
    let header = FileHeader64::<LE>::parse(object).ok()?;
    let sections = header.sections(LE, object).ok()?;
    let symbols = sections.symbols(LE, object, elf::SHT_SYMTAB).ok()?;
    if symbols.is_empty() {
        return None;
    }
    let contents = |section| Some(sections.section(section).ok()?.data(LE, object).ok()?.to_vec());
    let (mut entries, mut texts) = (contents(symbols.section())?, contents(symbols.string_section())?);
    // Of 65280 sections and more the numbers stand in a table of their own.
    let mut numbers: Option<Vec<u8>> = contents(symbols.shndx_section());
    for (section, name) in new {
        let number = u32::try_from(*section).ok()?;
        let mut entry = [0; SYMBOL_BYTES as usize];
        entry[..4].copy_from_slice(&u32::try_from(texts.len()).ok()?.to_le_bytes());
        entry[4] = elf::STB_GLOBAL.0 << 4 | elf::STT_OBJECT.0;
        entry[5] = elf::STV_HIDDEN.0;
        entry[6..8].copy_from_slice(&elf::SymbolSection::new(number).0.to_le_bytes());
        entries.extend(entry);
        numbers.iter_mut().for_each(|numbers| numbers.extend(number.to_le_bytes()));
        texts.extend(name.bytes().chain([0]));
    }
    let mut written = object.to_vec();
    let first: u64 = header.e_shoff.get(LE);
    let numbers = numbers.map(|numbers| (symbols.shndx_section(), numbers));
    for (index, bytes) in [(symbols.section(), entries), (symbols.string_section(), texts)].into_iter().chain(numbers) {
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

#[cfg(test)]
mod tests {
    use object::write::{Object, Symbol, SymbolSection};
    use object::{
        Architecture, BinaryFormat, Endianness, Object as _, ObjectSymbol, SectionKind, SymbolFlags, SymbolKind,
        SymbolScope,
    };

    use super::with_symbols;
    use crate::code::parse;

    /// A large program that is optimised as a whole is one object file.
    #[test]
    fn a_symbol_is_of_its_section_however_many_there_are() {
        let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        for number in 0..66_000 {
            let section = file.add_section(Vec::new(), format!(".text.{number}").into_bytes(), SectionKind::Text);
            file.append_section_data(section, &[0xcc], 1);
            file.add_symbol(Symbol {
                name: format!("own_{number}").into_bytes(),
                value: 0,
                size: 1,
                kind: SymbolKind::Text,
                scope: SymbolScope::Linkage,
                weak: false,
                section: SymbolSection::Section(section),
                flags: SymbolFlags::None,
            });
        }
        let section_of = |object: &[u8], name: &str| {
            let file = parse(object).expect("an object file");
            let symbol = file.symbols().find(|symbol| symbol.name_bytes() == Ok(name.as_bytes()));
            symbol.and_then(|symbol| symbol.section_index()).map(|section| section.0)
        };
        let object = file.write().expect("an object file");
        let last = section_of(&object, "own_65999").expect("a section");
        assert!(last > 0xff00, "{last}");
        let more = with_symbols(&object, &[(3, "low".to_owned()), (last, "high".to_owned())]).expect("symbols");
        let found = ["low", "high", "own_65999"].map(|name| section_of(&more, name));
        assert_eq!(found, [Some(3), Some(last), Some(last)]);
    }
}
