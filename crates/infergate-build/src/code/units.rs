//! The inputs of a linker: functions and data, each a unit with what it refers to.
//!
//! The compiler puts each function, variable and constant into a section of its own, and writes down each address that the linker has to
//! fill in. So this code never guesses where a constant ends, or which bytes are an address. C compilers and assemblers put several
//! functions into a section; it is split where each function begins. A section whose constants the linker merges is split into its
//! constants.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash};
use std::ops::Range;

use anyhow::{Context, Result};
use object::read::elf::{ElfFile64, ElfSection64};
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationKind, RelocationTarget,
    SectionFlags, SymbolKind, SymbolSection, elf,
};

use super::names::is_of_rust;
use super::parse;

/// A function, a variable, a constant.
#[derive(Debug)]
pub struct Unit<'data> {
    /// Mangled names of its first byte, in order. The compiler's constants have none.
    pub symbols: Vec<&'data [u8]>,
    pub kind: Kind,
    pub bytes: u64,
    /// Alignment of its section.
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
    /// Where it is in its unit.
    pub offset: u64,
    /// The type of its relocation: what the linker does there.
    pub relocation: u32,
    /// How many bytes after the target's beginning it points.
    pub addend: i64,
    pub to: Target<'data>,
}

#[derive(Debug, Clone, Copy)]
pub enum Target<'data> {
    /// The number of a unit.
    Unit(usize),
    /// A function of a library, which no object file has.
    Name(&'data [u8]),
}

/// The offset of a symbol in its section, whether it has a type, and its name.
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

pub fn hash(what: &(impl Hash + ?Sized)) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(what)
}

/// The units of all object files of a program.
#[derive(Debug, Default)]
pub struct Units<'data> {
    pub all: Vec<Unit<'data>>,
    sections: HashMap<SectionId, SectionUnits>,
    /// Names that other object files can refer to: the sections that have each, and the offset there.
    exported: HashMap<&'data [u8], Vec<(SectionId, u64)>>,
    /// Names that several object files export, such as C++'s templates. Which copy the linker takes is not known: by name one unit that
    /// refers to all of them.
    copied: HashMap<&'data [u8], usize>,
    /// Sections whose name is a valid name in C: the linker makes the symbols `__start_NAME` and `__stop_NAME` for them. By name one unit
    /// that refers to all their units.
    linker_sets: HashMap<&'data [u8], usize>,
}

impl<'data> Units<'data> {
    /// Reads object files. `line_in_head` gives the number in head of a line of a source.
    ///
    /// # Errors
    /// An object file that is not 64-bit little-endian ELF, such as LLVM bitcode.
    pub fn read(objects: &[&'data [u8]], line_in_head: &mut dyn FnMut(&str, usize) -> usize) -> Result<Self> {
        let mut units = Self::default();
        let files = objects.iter().copied().map(parse).collect::<Result<Vec<_>>>()?;
        for (number, file) in files.iter().enumerate() {
            units.add_file(number, file)?;
        }
        units.gather_copies();
        for (number, file) in files.iter().enumerate() {
            for section in file.sections() {
                units.connect((number, section.index().0), file, &section)?;
            }
        }
        let locations: Vec<_> = units.all.iter().map(|unit| units.location(unit, line_in_head)).collect();
        for (unit, location) in units.all.iter_mut().zip(locations) {
            match location {
                Some(location) => (unit.own_hash, unit.references) = (hash(&location), Vec::new()),
                None => {
                    let place = (unit.kind == Kind::Code).then_some(unit.start);
                    let filled_in: Vec<_> = unit.references.iter().map(|it| (it.offset, it.relocation)).collect();
                    unit.own_hash = hash(&(unit.bytes, unit.align, place, unit.data, filled_in));
                }
            }
        }
        Ok(units)
    }

    fn add_file(&mut self, number: usize, file: &File<'data>) -> Result<()> {
        let mut symbols: HashMap<usize, Vec<SectionSymbol>> = HashMap::new();
        for symbol in file.symbols() {
            let SymbolSection::Section(section) = symbol.section() else { continue };
            let (name, at) = (symbol.name_bytes()?, symbol.address());
            if symbol.is_global() {
                self.exported.entry(name).or_default().push(((number, section.0), at));
            }
            if symbol.kind() != SymbolKind::Section && !name.is_empty() {
                let has_type = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Tls);
                symbols.entry(section.0).or_default().push((at, has_type, name));
            }
        }
        for section in file.sections() {
            let index = section.index().0;
            self.add_section((number, index), &section, symbols.remove(&index).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Splits a section into units where its `symbols` say that something begins, or where its constants do.
    fn add_section(
        &mut self,
        id: SectionId,
        section: &ElfSection64<'data, '_, LittleEndian>,
        mut symbols: Vec<SectionSymbol<'data>>,
    ) -> Result<()> {
        let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else { return Ok(()) };
        let (name, data, bytes) = (section.name_bytes()?, section.data()?, section.size());
        if sh_flags.0 & elf::SHF_ALLOC.0 == 0 || bytes == 0 || is_of_unwinding(name) {
            return Ok(());
        }
        symbols.sort_unstable();
        let kind = kind(name, sh_type.0, sh_flags.0);
        let mut starts = match kind {
            Kind::Code => symbols.iter().map(|(at, ..)| *at).collect(),
            Kind::Constant { is_merged: true } => {
                constants(data, section.elf_section_header().sh_entsize.get(LittleEndian), sh_flags.0)
            }
            _ => Vec::new(),
        };
        starts.insert(0, 0);
        starts.push(bytes);
        starts.dedup();
        let names = |start: u64| {
            let first = symbols.partition_point(|(at, ..)| *at < start);
            let here = symbols[first..].iter().take_while(|(at, ..)| *at == start);
            here.filter(|(_, has_type, _)| *has_type).map(|(.., name)| *name).collect()
        };
        let new_unit = |start: u64, end: u64| Unit {
            symbols: names(start),
            kind,
            bytes: end - start,
            align: section.align(),
            own_hash: 0,
            references: Vec::new(),
            section: id,
            start,
            // A call within a section has no relocation to follow, so functions of one section count as changed together.
            data: if kind == Kind::Code { data } else { data.get(start as usize..end as usize).unwrap_or_default() },
        };
        let first = self.all.len();
        let parts = starts.windows(2).filter(|part| part[0] < part[1]);
        self.all.extend(parts.map(|part| new_unit(part[0], part[1])));
        let units = first..self.all.len();
        let as_one_unit = (kind == Kind::Constant { is_merged: true }).then(|| {
            self.all.push(new_unit(0, bytes));
            self.all.len() - 1
        });
        // The linker makes symbols for the beginning and the end of such sections: their name can be one of C.
        if name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            let set = *self.linker_sets.entry(name).or_insert_with(|| {
                self.all.push(Unit { symbols: Vec::new(), data: &[], bytes: 0, ..new_unit(0, bytes) });
                self.all.len() - 1
            });
            let references = &mut self.all[set].references;
            let of = |unit| Reference { offset: 0, relocation: 0, addend: 0, to: Target::Unit(unit) };
            references.extend(units.clone().map(of));
        }
        self.sections.insert(id, SectionUnits { units, as_one_unit });
        Ok(())
    }

    /// Makes one unit of each name that several object files export.
    fn gather_copies(&mut self) {
        let several = self.exported.iter().filter(|(_, places)| places.len() > 1);
        let of_copy = |(id, at): &(SectionId, u64)| {
            let section = self.sections.get(id)?;
            let unit = section.as_one_unit.unwrap_or_else(|| self.unit_at(&section.units, *at));
            let addend = *at as i64 - self.all[unit].start as i64;
            Some(Reference { offset: 0, relocation: 0, addend, to: Target::Unit(unit) })
        };
        let of_all = |(name, places): (&&'data [u8], &Vec<(SectionId, u64)>)| {
            let unit = Unit {
                symbols: Vec::new(),
                kind: Kind::Constant { is_merged: true },
                bytes: 0,
                align: 1,
                own_hash: 0,
                references: places.iter().filter_map(of_copy).collect(),
                section: places[0].0,
                start: 0,
                data: &[],
            };
            (*name, unit)
        };
        for (name, unit) in several.map(of_all).collect::<Vec<_>>() {
            self.copied.insert(name, self.all.len());
            self.all.push(unit);
        }
    }

    /// Adds to the units of a section what they refer to.
    fn connect(&mut self, id: SectionId, file: &File<'data>, section: &impl ObjectSection<'data>) -> Result<()> {
        let Some(units) = self.sections.get(&id).map(|section| section.units.clone()) else { return Ok(()) };
        let mut relocations: Vec<(u64, Relocation)> = section.relocations().collect();
        relocations.sort_by_key(|(at, _)| *at);
        for (at, relocation) in relocations {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let from = self.unit_at(&units, at);
            let offset = at - self.all[from].start;
            let targets = match relocation.target() {
                RelocationTarget::Symbol(symbol) => {
                    let symbol = file.symbol_by_index(symbol).context("an object file refers to nothing")?;
                    self.targets(id.0, &symbol, &relocation, self.all[from].kind == Kind::Code)?
                }
                _ => vec![(Target::Name(b""), relocation.addend())],
            };
            let reference = |(to, addend)| Reference { offset, relocation: r_type.0, addend, to };
            self.all[from].references.extend(targets.into_iter().map(reference));
        }
        Ok(())
    }

    /// The unit at this offset, of those of one section.
    fn unit_at(&self, units: &Range<usize>, offset: u64) -> usize {
        let before = self.all[units.clone()].partition_point(|unit| unit.start <= offset);
        units.start + before.saturating_sub(1)
    }

    /// The units that a symbol may point to, and how many bytes after their beginnings.
    fn targets(
        &self,
        object: usize,
        symbol: &impl ObjectSymbol<'data>,
        relocation: &Relocation,
        is_code: bool,
    ) -> Result<Vec<(Target<'data>, i64)>> {
        let name = symbol.name_bytes()?;
        let own = symbol
            .section_index()
            .filter(|_| symbol.is_local())
            .map(|section| vec![((object, section.0), symbol.address())]);
        if let Some(copies) = self.copied.get(name).filter(|_| own.is_none()) {
            return Ok(vec![(Target::Unit(*copies), relocation.addend())]);
        }
        let Some(places) = own.as_ref().or_else(|| self.exported.get(name)) else {
            let names = [&b"__start_"[..], b"__stop_"].map(|start| name.strip_prefix(start));
            let set = names.into_iter().flatten().find_map(|name| self.linker_sets.get(name));
            let target = set.map_or(Target::Name(name), |set| Target::Unit(*set));
            return Ok(vec![(target, relocation.addend().wrapping_add_unsigned(symbol.address()))]);
        };
        let is_of_section = symbol.kind() == SymbolKind::Section;
        let of_place = |(id, at): &(SectionId, u64)| self.targets_at(*id, *at, is_of_section, relocation, is_code);
        Ok(places.iter().flat_map(of_place).collect())
    }

    /// The units at a place in a section. An address within a merged constant can also mean the next one: an instruction with an operand
    /// after its address counts from the operand's end.
    fn targets_at(
        &self,
        id: SectionId,
        at: u64,
        is_of_section: bool,
        relocation: &Relocation,
        is_code: bool,
    ) -> Vec<(Target<'data>, i64)> {
        let addend = relocation.addend();
        let Some(section) = self.sections.get(&id) else { return vec![(Target::Name(b""), addend)] };
        let is_absolute = relocation.kind() == RelocationKind::Absolute;
        // Without an operand after it, an address counts from the end of its own four bytes.
        let counted = [elf::R_X86_64_PC32, elf::R_X86_64_PLT32];
        let is_counted = matches!(relocation.flags(), RelocationFlags::Elf { r_type } if counted.contains(&r_type));
        let from_end = if is_counted { 4 } else { 0 };
        let unit = match section.as_one_unit {
            // An entry of a table has its own distance from the table's beginning in the addend: the constant is not known.
            Some(whole) if !is_code && !is_absolute => whole,
            _ if is_of_section => self.unit_at(&section.units, at.saturating_add_signed(addend + from_end)),
            _ => self.unit_at(&section.units, at),
        };
        let distance = at as i64 + addend - self.all[unit].start as i64;
        let is_within = section.as_one_unit.is_some_and(|whole| whole != unit) && distance != -from_end;
        let last = if is_within { (unit + 1).min(section.units.end - 1) } else { unit };
        (unit..=last).map(|unit| (Target::Unit(unit), distance)).collect()
    }

    /// The source, the line in head and the column, if this is the location of a panic, which the compiler makes of a pointer to the
    /// source's path, its length, line and column. Of an absolute path only the file's name counts: another checkout has another path.
    fn location(
        &self,
        unit: &Unit,
        line_in_head: &mut dyn FnMut(&str, usize) -> usize,
    ) -> Option<(&'data str, usize, u32)> {
        let is_compilers = unit.data.len() == LOCATION && !unit.symbols.iter().any(|symbol| is_of_rust(symbol));
        let [Reference { offset: 0, to: Target::Unit(path), .. }] = unit.references[..] else { return None };
        if !is_compilers || !matches!(unit.kind, Kind::Constant { .. }) {
            return None;
        }
        let path = self.all[path].data;
        let path = str::from_utf8(path.strip_suffix(b"\0").unwrap_or(path)).ok()?;
        let name = if path.starts_with('/') { path.rsplit('/').next()? } else { path };
        let number = |from: usize| u32::from_le_bytes([0, 1, 2, 3].map(|at| unit.data[from + at]));
        name.ends_with(".rs").then(|| (name, line_in_head(path, number(LINE) as usize), number(COLUMN)))
    }
}

/// The size of a `core::panic::Location`, bytes.
const LOCATION: usize = 24;
/// The offset of its line, bytes.
const LINE: usize = 16;
/// The offset of its column, bytes.
const COLUMN: usize = 20;

/// Unwinding tables and notes. The code that a panic runs is in the functions, too.
fn is_of_unwinding(section: &[u8]) -> bool {
    [&b".eh_frame"[..], b".gcc_except_table", b".note"].iter().any(|name| section.starts_with(name))
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

/// Where the constants of a section begin that the linker merges: texts that end with a zero, or numbers of `size` bytes.
fn constants(data: &[u8], size: u64, sh_flags: u64) -> Vec<u64> {
    let bytes = data.len() as u64;
    if sh_flags & elf::SHF_STRINGS.0 == 0 {
        return if size > 1 { (0..bytes).step_by(size as usize).collect() } else { Vec::new() };
    }
    // A section of UTF-16 or UTF-32 is one constant.
    let ends = data.iter().zip(1..).filter(|(byte, _)| **byte == 0 && size == 1).map(|(_, end)| end);
    ends.filter(|end| *end < bytes).collect()
}
