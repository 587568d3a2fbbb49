//! What of an executable is loaded: its sections, and the addresses that the loader writes into them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use object::read::elf::{ElfFile64, SectionHeader};
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget,
    SectionFlags, SymbolKind, elf,
};

/// An ELF file of 64 bits, little endian, that may be loaded anywhere.
pub struct Image<'data> {
    /// What it is for: machine, version and kind of the header, and where it begins.
    pub header: (u16, u64),
    /// Everything that is loaded, by address.
    pub sections: Vec<Section<'data>>,
    /// What the loader writes, by where.
    pub pointers: BTreeMap<u64, Pointer>,
    /// Functions and objects that have a name, by address.
    pub symbols: Vec<Symbol<'data>>,
    /// The libraries that the loader loads with it, in order.
    pub libraries: Vec<&'data [u8]>,
}

pub struct Section<'data> {
    /// Its name: `.rodata`.
    pub name: &'data [u8],
    /// Where it lies when loaded at zero.
    pub address: u64,
    /// Bytes in memory.
    pub size: u64,
    /// What the linker says of it: type and flags.
    pub flags: (u32, u64),
    /// Its bytes; empty where it is all zero.
    pub bytes: &'data [u8],
}

/// What the loader writes at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pointer {
    /// The address of something in the executable.
    To(u64),
    /// Something else: a function of a library, a place of a thread. Its kind, its symbol, and what is added.
    Other(u32, Vec<u8>, i64),
}

/// A name for some bytes.
#[derive(Debug, Clone, Copy)]
pub struct Symbol<'data> {
    /// Where they are; of a variable of each thread, its place in the thread's block.
    pub address: u64,
    /// How many; 0 where nobody says.
    pub size: u64,
    /// The name, mangled.
    pub name: &'data [u8],
    pub kind: SymbolKind,
}

impl Section<'_> {
    /// Whether it holds machine code.
    pub fn is_code(&self) -> bool {
        self.flags.1 & elf::SHF_EXECINSTR.0 != 0
    }

    /// Whether it is a list that parts of a program are put into, each by its own source: the linker gives its ends names, where a name
    /// of C can be made of its own, and what it starts a program with is such a list, too.
    pub fn is_slice(&self) -> bool {
        let is_of_c = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let (name, at_start_or_end) =
            (self.name, [elf::SHT_INIT_ARRAY.0, elf::SHT_FINI_ARRAY.0, elf::SHT_PREINIT_ARRAY.0]);
        at_start_or_end.contains(&self.flags.0) || !name.is_empty() && name.iter().all(is_of_c)
    }

    /// The address behind it.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    fn holds(&self, address: u64) -> bool {
        (self.address..self.end()).contains(&address)
    }
}

impl<'data> Image<'data> {
    /// Reads `data`.
    ///
    /// # Errors
    /// A clause that says why its code cannot be compared: another format, an executable without sections, one whose libraries
    /// lie beside it.
    pub fn parse(data: &'data [u8]) -> Result<Self> {
        let file = File::parse(data).context("it is no ELF executable of 64 bits")?;
        let header = file.elf_header();
        ensure!(header.e_type.get(LittleEndian) == elf::ET_DYN, "it is not position-independent");
        let machine = header.e_machine.get(LittleEndian).0;
        let mut image = Self {
            header: (machine, file.entry()),
            sections: sections(&file)?,
            pointers: BTreeMap::new(),
            symbols: symbols(&file)?,
            libraries: libraries(&file)?,
        };
        image.pointers = image.pointers(&file, machine)?;
        ensure!(image.sections.iter().any(Section::is_code), "it has no section of code");
        Ok(image)
    }

    /// Whether its instructions are those of x86-64.
    pub fn is_x86_64(&self) -> bool {
        self.header.0 == elf::EM_X86_64.0
    }

    /// The section at an address.
    pub fn section(&self, address: u64) -> Option<&Section<'data>> {
        let at = self.sections.partition_point(|section| section.address <= address);
        // One of no bytes can share its address with the next.
        self.sections[..at].iter().rev().take(4).find(|section| section.holds(address))
    }

    /// The slice that ends at an address, where the linker gives its end a name.
    pub fn slice_before(&self, address: u64) -> Option<&Section<'data>> {
        let before = self.sections.partition_point(|section| section.address < address);
        self.sections[..before]
            .iter()
            .rev()
            .take(4)
            .find(|section| section.end() == address && section.is_slice() && !section.name.starts_with(b"."))
    }

    /// `size` bytes at an address; `None` where that is not all in one section, or where they are all zero.
    pub fn bytes(&self, address: u64, size: u64) -> Option<&'data [u8]> {
        let section = self.section(address)?;
        let from = usize::try_from(address - section.address).ok()?;
        section.bytes.get(from..from.checked_add(usize::try_from(size).ok()?)?)
    }

    /// Whether an address lies in an object that has a name.
    pub fn is_named(&self, address: u64) -> bool {
        let before = self.symbols.partition_point(|symbol| symbol.address <= address);
        let holds = |symbol: &Symbol| symbol.kind == SymbolKind::Data && address - symbol.address < symbol.size;
        self.symbols[..before].iter().rev().take(4).any(holds)
    }

    fn pointers(&self, file: &File, machine: u16) -> Result<BTreeMap<u64, Pointer>> {
        let relative = match machine {
            machine if machine == elf::EM_X86_64.0 => elf::R_X86_64_RELATIVE.0,
            machine if machine == elf::EM_AARCH64.0 => elf::R_AARCH64_RELATIVE.0,
            _ => bail!("its machine is not known"),
        };
        let mut found = BTreeMap::new();
        let symbols = file.dynamic_symbol_table();
        for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let addend = relocation.addend();
            let pointer = match relocation.target() {
                RelocationTarget::Absolute if r_type.0 == relative => Pointer::To(addend.cast_unsigned()),
                RelocationTarget::Symbol(index) => {
                    let symbol = symbols.as_ref().and_then(|table| table.symbol_by_index(index).ok());
                    let name = symbol.and_then(|symbol| symbol.name_bytes().ok());
                    let name = name.context("a name that the loader asks for cannot be read")?;
                    Pointer::Other(r_type.0, name.to_vec(), addend)
                }
                _ => Pointer::Other(r_type.0, Vec::new(), addend),
            };
            found.insert(place, pointer);
        }
        // Packed: only the places are listed, and what is written begins with what lies there.
        for section in file.elf_section_table().iter() {
            for place in section.relr(LittleEndian, file.data())?.into_iter().flatten() {
                let address = self.bytes(place, 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
                found.insert(place, Pointer::To(address.context("what the loader writes lies nowhere")?));
            }
        }
        Ok(found)
    }
}

type File<'data> = ElfFile64<'data, LittleEndian>;

fn sections<'data>(file: &File<'data>) -> Result<Vec<Section<'data>>> {
    let mut found = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else { continue };
        if sh_flags.0 & elf::SHF_ALLOC.0 == 0 {
            continue;
        }
        found.push(Section {
            name: section.name_bytes()?,
            address: section.address(),
            size: section.size(),
            flags: (sh_type.0, sh_flags.0),
            bytes: section.data()?,
        });
    }
    // Stable: a section that takes no place in memory stays beside the one it was before.
    found.sort_by_key(|section| section.address);
    Ok(found)
}

fn libraries<'data>(file: &File<'data>) -> Result<Vec<&'data [u8]>> {
    let dynamic = file.elf_dynamic_table()?;
    let has_own = dynamic.iter().any(|entry| [elf::DT_RPATH, elf::DT_RUNPATH].contains(&entry.tag));
    ensure!(!has_own, "it looks for libraries at a place of its own (RUNPATH)");
    let needed = dynamic.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
    Ok(needed.map(|entry| dynamic.string(entry)).collect::<object::Result<_>>()?)
}

fn symbols<'data>(file: &File<'data>) -> Result<Vec<Symbol<'data>>> {
    let mut found = Vec::new();
    for symbol in file.symbols().filter(ObjectSymbol::is_definition) {
        let kind = symbol.kind();
        if !matches!(kind, SymbolKind::Text | SymbolKind::Data | SymbolKind::Tls) {
            continue;
        }
        let name = symbol.name_bytes()?;
        found.push(Symbol { address: symbol.address(), size: symbol.size(), name, kind });
    }
    found.sort_by_key(|symbol| (symbol.address, symbol.name));
    Ok(found)
}
