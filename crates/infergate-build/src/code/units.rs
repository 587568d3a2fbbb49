//! What a linker was given: functions and data, each a unit with what it refers to.
//!
//! The compiler puts each function, variable and constant into a section of its own, and writes down each address that the linker has to
//! fill in. So nothing has to be guessed from instructions: neither where a constant ends, nor what is an address. A section of several
//! functions, as C compilers and assemblers make, is split where functions begin, and a section of constants that linkers merge into its
//! constants.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use anyhow::{Context, Result};
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationTarget, SectionFlags,
    SymbolKind, SymbolSection, elf,
};

use super::names::is_of_rust;

/// A function, a variable, a constant.
#[derive(Debug)]
pub struct Unit<'data> {
    /// Its names where it begins, mangled, in order. A constant of the compiler's has none.
    pub symbols: Vec<&'data [u8]>,
    pub kind: Kind,
    pub bytes: u64,
    /// Of its section.
    pub align: u64,
    /// A hash of its bytes without what the linker fills in, and of where it does.
    pub shape: u64,
    /// In order.
    pub references: Vec<Reference<'data>>,
    /// The number of its object file, and of its section there.
    pub section: (usize, usize),
    start: u64,
    data: &'data [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Code,
    /// The program writes to it: its bytes are what it begins with, and its name is what it is.
    Variable,
    /// In a section of its own, which has a place where it lies, or among others that the linker merges and sorts.
    Constant {
        is_merged: bool,
    },
    /// What runs before or behind `main`, though nothing refers to it.
    Start,
}

/// An address that the linker fills in.
#[derive(Debug)]
pub struct Reference<'data> {
    /// Where, in which way, and how far behind the beginning of what it is of.
    pub how: (u64, u32, i64),
    pub to: Target<'data>,
}

#[derive(Debug, Clone, Copy)]
pub enum Target<'data> {
    /// The number of a unit.
    Unit(usize),
    /// What is in none of the object files: a function of a library.
    Name(&'data [u8]),
}

/// Where in its section a symbol is, whether it is a function's, and its name.
type Named<'data> = (u64, bool, &'data [u8]);

type File<'data> = ElfFile64<'data, LittleEndian>;

/// The units of a section.
#[derive(Debug, Clone)]
struct Place {
    units: Range<usize>,
    /// All of it, where the units are its constants.
    whole: Option<usize>,
}

/// Those of all object files of a program.
#[derive(Debug, Default)]
pub struct Units<'data> {
    pub all: Vec<Unit<'data>>,
    /// By object file and section.
    places: HashMap<(usize, usize), Place>,
    /// What other object files find by name: its section, and where there.
    exported: HashMap<&'data [u8], ((usize, usize), u64)>,
    /// Sections that the linker puts together and gives names to: by that name one unit that refers to all their units.
    lists: HashMap<&'data [u8], usize>,
}

impl<'data> Units<'data> {
    /// Reads object files.
    ///
    /// # Errors
    /// One that is no ELF file of 64 bits, little endian, as one of bitcode for the linker.
    pub fn read(objects: &[&'data [u8]]) -> Result<Self> {
        let mut units = Self::default();
        let parse = |bytes: &&'data [u8]| File::parse(*bytes).context("an object file cannot be read");
        let files = objects.iter().map(parse).collect::<Result<Vec<_>>>()?;
        for (number, file) in files.iter().enumerate() {
            units.add(number, file)?;
        }
        for (number, file) in files.iter().enumerate() {
            for section in file.sections() {
                units.connect((number, section.index().0), file, &section)?;
            }
        }
        for unit in 0..units.all.len() {
            units.all[unit].shape = units.shape(unit);
        }
        Ok(units)
    }

    fn add(&mut self, number: usize, file: &File<'data>) -> Result<()> {
        let mut symbols: HashMap<usize, Vec<Named>> = HashMap::new();
        for symbol in file.symbols().filter(ObjectSymbol::is_definition) {
            let SymbolSection::Section(section) = symbol.section() else { continue };
            let name = symbol.name_bytes()?;
            if symbol.is_global() {
                self.exported.entry(name).or_insert(((number, section.0), symbol.address()));
            }
            if matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Tls) {
                let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
                symbols.entry(section.0).or_default().push((symbol.address(), is_function, name));
            }
        }
        for section in file.sections() {
            let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else { continue };
            let (name, data, bytes) = (section.name_bytes()?, section.data()?, section.size());
            if sh_flags.0 & elf::SHF_ALLOC.0 == 0 || bytes == 0 || is_of_unwinding(name) {
                continue;
            }
            let mut named = symbols.remove(&section.index().0).unwrap_or_default();
            named.sort_unstable();
            let kind = kind(name, sh_type.0, sh_flags.0);
            let mut starts = match kind {
                Kind::Code => named.iter().filter(|(_, is_function, _)| *is_function).map(|(at, ..)| *at).collect(),
                Kind::Constant { is_merged: true } => {
                    constants(data, section.elf_section_header().sh_entsize.get(LittleEndian), sh_flags.0)
                }
                _ => Vec::new(),
            };
            starts.insert(0, 0);
            starts.dedup();
            let place = (number, section.index().0);
            let unit = |start: u64, end: u64| Unit {
                symbols: named.iter().filter(|(at, ..)| *at == start).map(|(.., name)| *name).collect(),
                kind,
                bytes: end - start,
                align: section.align(),
                shape: 0,
                references: Vec::new(),
                section: place,
                start,
                data: data.get(start as usize..end as usize).unwrap_or_default(),
            };
            let first = self.all.len();
            let ends = starts[1..].iter().copied().chain([bytes]);
            self.all.extend(
                starts.iter().zip(ends).filter(|(start, end)| *start < end).map(|(start, end)| unit(*start, end)),
            );
            let units = first..self.all.len();
            let whole = (kind == Kind::Constant { is_merged: true }).then(|| {
                self.all.push(unit(0, bytes));
                self.all.len() - 1
            });
            if is_list(name) {
                let list = *self.lists.entry(name).or_insert_with(|| {
                    self.all.push(Unit { symbols: Vec::new(), data: &[], bytes: 0, ..unit(0, bytes) });
                    self.all.len() - 1
                });
                let references = &mut self.all[list].references;
                let of = |unit| Reference { how: (0, 0, 0), to: Target::Unit(unit) };
                references.extend(units.clone().map(of));
            }
            self.places.insert(place, Place { units, whole });
        }
        Ok(())
    }

    /// Gives the units of a section what they refer to.
    fn connect(
        &mut self,
        place: (usize, usize),
        file: &File<'data>,
        section: &impl ObjectSection<'data>,
    ) -> Result<()> {
        let Some(units) = self.places.get(&place).map(|place| place.units.clone()) else { return Ok(()) };
        let mut relocations: Vec<(u64, Relocation)> = section.relocations().collect();
        relocations.sort_by_key(|(at, _)| *at);
        for (at, relocation) in relocations {
            let (RelocationFlags::Elf { r_type }, RelocationTarget::Symbol(symbol)) =
                (relocation.flags(), relocation.target())
            else {
                continue;
            };
            let symbol = file.symbol_by_index(symbol).context("an object file refers to nothing")?;
            let from = self.unit_at(&units, at);
            let is_code = self.all[from].kind == Kind::Code;
            let (to, behind) = self.target(place.0, &symbol, relocation.addend(), r_type.0, is_code)?;
            let how = (at - self.all[from].start, r_type.0, behind);
            self.all[from].references.extend(to.into_iter().flatten().map(|to| Reference { how, to }));
        }
        Ok(())
    }

    /// The unit of these, of one section, that has this place in it.
    fn unit_at(&self, units: &Range<usize>, at: u64) -> usize {
        let before = self.all[units.clone()].partition_point(|unit| unit.start <= at);
        units.start + before.saturating_sub(1)
    }

    /// What is at a symbol and `addend`, and how far behind its beginning. Of constants that the linker merges two where the address is not
    /// the beginning of one: from an instruction with a number behind its address it is counted from there.
    fn target<'file>(
        &self,
        number: usize,
        symbol: &impl ObjectSymbol<'data>,
        addend: i64,
        r_type: u32,
        is_code: bool,
    ) -> Result<([Option<Target<'data>>; 2], i64)> {
        let name = symbol.name_bytes()?;
        let (place, at) = match symbol.section() {
            SymbolSection::Section(section) => ((number, section.0), symbol.address()),
            _ => match self.exported.get(name) {
                Some(found) => *found,
                None => {
                    let list = [&b"__start_"[..], b"__stop_"]
                        .iter()
                        .find_map(|start| self.lists.get(name.strip_prefix(*start)?));
                    return Ok(([Some(list.map_or(Target::Name(name), |list| Target::Unit(*list))), None], addend));
                }
            },
        };
        let Some(Place { units, whole }) = self.places.get(&place) else {
            return Ok(([Some(Target::Name(b"")), None], addend));
        };
        let is_relative = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0].contains(&r_type);
        let unit = match whole {
            // How far a table's entry lies behind the table's beginning is in the addend.
            Some(whole) if !is_code && is_relative => *whole,
            _ => {
                const TO_THE_NEXT_INSTRUCTION: i64 = 4;
                let behind = if is_relative { addend + TO_THE_NEXT_INSTRUCTION } else { addend };
                let of_section = if symbol.kind() == SymbolKind::Section { behind } else { 0 };
                self.unit_at(units, at.saturating_add_signed(of_section))
            }
        };
        let behind = at as i64 + addend - self.all[unit].start as i64;
        let is_within = whole.is_some_and(|whole| whole != unit) && behind != if is_relative { -4 } else { 0 };
        let next = (is_within && unit + 1 < units.end).then_some(Target::Unit(unit + 1));
        Ok(([Some(Target::Unit(unit)), next], behind))
    }

    fn shape(&self, unit: usize) -> u64 {
        let unit = &self.all[unit];
        let mut hasher = DefaultHasher::new();
        let data = if self.is_location(unit) { &unit.data[..LINE] } else { unit.data };
        (unit.bytes, data).hash(&mut hasher);
        if unit.kind != Kind::Code {
            unit.align.hash(&mut hasher);
        }
        unit.references.iter().for_each(|reference| (reference.how.0, reference.how.1).hash(&mut hasher));
        hasher.finish()
    }

    /// Whether it is a panic's location, which the compiler makes: where the name of a source is, its length, line and column. A line
    /// is what is left of an edited comment, and nothing but a panic's message shows it.
    fn is_location(&self, unit: &Unit) -> bool {
        let is_source = |to: &Target| {
            matches!(to, Target::Unit(text) if {
                let text = self.all[*text].data;
                text.strip_suffix(b"\0").unwrap_or(text).ends_with(b".rs")
            })
        };
        unit.data.len() == LOCATION
            && !unit.symbols.iter().any(|symbol| is_of_rust(symbol))
            && matches!(unit.kind, Kind::Constant { .. })
            && matches!(&unit.references[..], [Reference { how: (0, ..), to }] if is_source(to))
    }
}

/// Bytes of a `core::panic::Location`, and where its line begins.
const LOCATION: usize = 24;
const LINE: usize = 16;

/// What is read when a panic unwinds, and notes: which landing place a call has shows in the function, too.
fn is_of_unwinding(section: &[u8]) -> bool {
    [&b".eh_frame"[..], b".gcc_except_table", b".note"].iter().any(|name| section.starts_with(name))
}

/// Whether the linker gives names to where such sections begin and end: theirs can be a name of C.
fn is_list(section: &[u8]) -> bool {
    section.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn kind(section: &[u8], sh_type: u32, sh_flags: u64) -> Kind {
    let has = |flag: elf::SectionFlags| sh_flags & flag.0 != 0;
    if [elf::SHT_INIT_ARRAY.0, elf::SHT_FINI_ARRAY.0, elf::SHT_PREINIT_ARRAY.0].contains(&sh_type) {
        Kind::Start
    } else if has(elf::SHF_EXECINSTR) {
        Kind::Code
    } else if has(elf::SHF_WRITE) && !section.starts_with(b".data.rel.ro") {
        Kind::Variable
    } else {
        Kind::Constant { is_merged: has(elf::SHF_MERGE) }
    }
}

/// Where constants begin in a section of such that the linker merges: texts that end with a zero, or numbers of `size` bytes.
fn constants(data: &[u8], size: u64, sh_flags: u64) -> Vec<u64> {
    let bytes = data.len() as u64;
    if sh_flags & elf::SHF_STRINGS.0 == 0 {
        return (0..bytes).step_by(size.max(1) as usize).collect();
    }
    // Texts of wider letters are one.
    let ends = data.iter().zip(1..).filter(|(byte, _)| **byte == 0 && size == 1).map(|(_, end)| end);
    ends.filter(|end| *end < bytes).collect()
}
