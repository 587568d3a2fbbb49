//! What a linker was given: functions and data, each a unit with what it refers to.
//!
//! The compiler puts each function, variable and constant into a section of its own, and writes down each address that the linker has to
//! fill in. So this code never guesses where a constant ends, or which bytes are an address. C compilers and assemblers put several functions
//! into a section; it is split where each function begins. A section whose constants the linker merges is split into its constants.

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
    /// Names of its first byte, mangled, in order. A constant of the compiler's has none.
    pub symbols: Vec<&'data [u8]>,
    pub kind: Kind,
    pub bytes: u64,
    /// Of its section.
    pub align: u64,
    /// A hash of its bytes without what the linker fills in, and of where it does.
    pub own_hash: u64,
    /// In order.
    pub references: Vec<Reference<'data>>,
    pub section: SectionId,
    start: u64,
    data: &'data [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Code,
    /// The program writes to it. Its bytes are its first value, and its name tells it from others.
    Variable,
    /// `is_merged`: it lies in a section that the linker merges with others and sorts.
    Constant {
        is_merged: bool,
    },
    /// It runs before or after `main`, though nothing refers to it.
    Initializer,
}

/// An address that the linker fills in.
#[derive(Debug)]
pub struct Reference<'data> {
    /// Where it is in its unit, what the linker does there, and how far behind the target's beginning it points.
    pub offset: u64,
    pub relocation: u32,
    pub addend: i64,
    pub to: Target<'data>,
}

#[derive(Debug, Clone, Copy)]
pub enum Target<'data> {
    /// The number of a unit.
    Unit(usize),
    /// A function of a library: none of the object files has it.
    Name(&'data [u8]),
}

/// Where in its section a symbol is, whether it is a function's, and its name.
type SectionSymbol<'data> = (u64, bool, &'data [u8]);

type File<'data> = ElfFile64<'data, LittleEndian>;

/// The numbers of an object file, and of a section there.
pub type SectionId = (usize, usize);

/// The units of a section.
#[derive(Debug, Clone)]
struct SectionUnits {
    units: Range<usize>,
    /// The section as one unit, where the linker merges its constants.
    as_one_unit: Option<usize>,
}

/// Those of all object files of a program.
#[derive(Debug, Default)]
pub struct Units<'data> {
    pub all: Vec<Unit<'data>>,
    sections: HashMap<SectionId, SectionUnits>,
    /// What other object files find by name: its section, and where there.
    exported: HashMap<&'data [u8], (SectionId, u64)>,
    /// Sections that are called like something in C, for which the linker makes symbols `__start_NAME` and `__stop_NAME`: by name one unit
    /// that refers to all their units.
    linker_sets: HashMap<&'data [u8], usize>,
}

impl<'data> Units<'data> {
    /// Reads object files.
    ///
    /// # Errors
    /// An object file that is not 64-bit little-endian ELF, such as LLVM bitcode.
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
            units.all[unit].own_hash = units.own_hash(unit);
        }
        Ok(units)
    }

    fn add(&mut self, number: usize, file: &File<'data>) -> Result<()> {
        let mut symbols: HashMap<usize, Vec<SectionSymbol>> = HashMap::new();
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
            let id = (number, section.index().0);
            let new_unit = |start: u64, end: u64| Unit {
                symbols: named.iter().filter(|(at, ..)| *at == start).map(|(.., name)| *name).collect(),
                kind,
                bytes: end - start,
                align: section.align(),
                own_hash: 0,
                references: Vec::new(),
                section: id,
                start,
                data: data.get(start as usize..end as usize).unwrap_or_default(),
            };
            let first = self.all.len();
            let ends = starts[1..].iter().copied().chain([bytes]);
            self.all.extend(
                starts.iter().zip(ends).filter(|(start, end)| *start < end).map(|(start, end)| new_unit(*start, end)),
            );
            let units = first..self.all.len();
            let as_one_unit = (kind == Kind::Constant { is_merged: true }).then(|| {
                self.all.push(new_unit(0, bytes));
                self.all.len() - 1
            });
            if has_start_and_stop_symbols(name) {
                let set = *self.linker_sets.entry(name).or_insert_with(|| {
                    self.all.push(Unit { symbols: Vec::new(), data: &[], bytes: 0, ..new_unit(0, bytes) });
                    self.all.len() - 1
                });
                let references = &mut self.all[set].references;
                let of = |unit| Reference { offset: 0, relocation: 0, addend: 0, to: Target::Unit(unit) };
                references.extend(units.clone().map(of));
            }
            self.sections.insert(id, SectionUnits { units, as_one_unit });
        }
        Ok(())
    }

    /// Gives the units of a section what they refer to.
    fn connect(&mut self, id: SectionId, file: &File<'data>, section: &impl ObjectSection<'data>) -> Result<()> {
        let Some(units) = self.sections.get(&id).map(|section| section.units.clone()) else { return Ok(()) };
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
            let (is_code, offset) = (self.all[from].kind == Kind::Code, at - self.all[from].start);
            let (targets, addend) = self.targets(id.0, &symbol, relocation.addend(), r_type.0, is_code)?;
            let reference = |to| Reference { offset, relocation: r_type.0, addend, to };
            self.all[from].references.extend(targets.into_iter().map(reference));
        }
        Ok(())
    }

    /// The unit at this offset, of those of one section.
    fn unit_at(&self, units: &Range<usize>, offset: u64) -> usize {
        let before = self.all[units.clone()].partition_point(|unit| unit.start <= offset);
        units.start + before.saturating_sub(1)
    }

    /// What a symbol and `addend` point to, and how far behind its beginning. It is one unit, but for an address within a merged constant:
    /// that is this constant or the next one, since an instruction with a number behind its address counts from the number's end.
    fn targets(
        &self,
        object: usize,
        symbol: &impl ObjectSymbol<'data>,
        addend: i64,
        relocation: u32,
        is_code: bool,
    ) -> Result<(Vec<Target<'data>>, i64)> {
        let name = symbol.name_bytes()?;
        let (id, at) = match (symbol.section(), self.exported.get(name)) {
            (SymbolSection::Section(section), _) => ((object, section.0), symbol.address()),
            (_, Some(found)) => *found,
            (_, None) => {
                let names = [&b"__start_"[..], b"__stop_"].map(|start| name.strip_prefix(start));
                let set = names.into_iter().flatten().find_map(|name| self.linker_sets.get(name));
                return Ok((vec![set.map_or(Target::Name(name), |set| Target::Unit(*set))], addend));
            }
        };
        let Some(section) = self.sections.get(&id) else { return Ok((vec![Target::Name(b"")], addend)) };
        let is_relative = [elf::R_X86_64_PC32.0, elf::R_X86_64_PLT32.0].contains(&relocation);
        let from_next_instruction = if is_relative { 4 } else { 0 };
        let unit = match section.as_one_unit {
            // How far a table's entry lies behind the table's beginning is in the addend.
            Some(whole) if !is_code && is_relative => whole,
            _ if symbol.kind() == SymbolKind::Section => {
                self.unit_at(&section.units, at.saturating_add_signed(addend + from_next_instruction))
            }
            _ => self.unit_at(&section.units, at),
        };
        let behind = at as i64 + addend - self.all[unit].start as i64;
        let is_within = section.as_one_unit.is_some_and(|whole| whole != unit) && behind != -from_next_instruction;
        let last = if is_within { (unit + 1).min(section.units.end - 1) } else { unit };
        Ok(((unit..=last).map(Target::Unit).collect(), behind))
    }

    fn own_hash(&self, unit: usize) -> u64 {
        let unit = &self.all[unit];
        let mut hasher = DefaultHasher::new();
        let data = if self.is_location(unit) { &unit.data[..LINE] } else { unit.data };
        (unit.bytes, data).hash(&mut hasher);
        if unit.kind != Kind::Code {
            unit.align.hash(&mut hasher);
        }
        unit.references.iter().for_each(|reference| (reference.offset, reference.relocation).hash(&mut hasher));
        hasher.finish()
    }

    /// Whether it is a panic's location, which the compiler makes: where the name of a source is, its length, line and column. An edited
    /// comment shifts lines, and only a panic's message shows them.
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
            && matches!(&unit.references[..], [Reference { offset: 0, to, .. }] if is_source(to))
    }
}

/// Bytes of a `core::panic::Location`, and where its line begins.
const LOCATION: usize = 24;
const LINE: usize = 16;

/// Tables that a panic unwinds by, and notes. What runs then is in the functions, too.
fn is_of_unwinding(section: &[u8]) -> bool {
    [&b".eh_frame"[..], b".gcc_except_table", b".note"].iter().any(|name| section.starts_with(name))
}

/// Whether the linker makes symbols for the beginning and the end of such sections: their name can be one of C.
fn has_start_and_stop_symbols(section: &[u8]) -> bool {
    section.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn kind(section: &[u8], sh_type: u32, sh_flags: u64) -> Kind {
    let has = |flag: elf::SectionFlags| sh_flags & flag.0 != 0;
    if [elf::SHT_INIT_ARRAY.0, elf::SHT_FINI_ARRAY.0, elf::SHT_PREINIT_ARRAY.0].contains(&sh_type) {
        Kind::Initializer
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
    // A section of UTF-16 or UTF-32 is one constant.
    let ends = data.iter().zip(1..).filter(|(byte, _)| **byte == 0 && size == 1).map(|(_, end)| end);
    ends.filter(|end| *end < bytes).collect()
}
