//! A program or library that code ran in: how its stack unwinds, and the functions at its addresses.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use framehop::ModuleSectionInfo;
use infergate_core::worker::ProfileModule;
use object::read::elf::ProgramHeader;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::lines::Lines;
use infergate_build::code::{self, readable};

/// One file of machine code as it was loaded.
pub struct Image {
    /// Address and bytes of the sections that unwinding needs, by name.
    sections: HashMap<&'static [u8], (u64, Rc<[u8]>)>,
    /// What is loaded to run: address, place in the file, bytes.
    code: Vec<(u64, u64, u64)>,
    /// Functions by address, with their bytes and demangled names.
    functions: Vec<(u64, u64, Rc<str>)>,
    /// The name for functions without one.
    unnamed: Rc<str>,
    /// Functions that may have changed, by name, and how.
    changed: Rc<HashMap<String, Change>>,
    lines: Option<Lines>,
    known: RefCell<HashMap<u64, Frame>>,
}

/// How a function's machine code changed, the surest last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It refers to something else, or not even that: where a constant ends is not known.
    Refers,
    /// It has other instructions.
    Instructions,
    /// It has, and its source was edited.
    Edited,
}

/// What is at an address.
#[derive(Clone)]
pub struct Frame {
    /// The function's name, without hashes.
    pub name: Rc<str>,
    /// How its machine code changed; `None` for one that is the same.
    pub change: Option<Change>,
    /// File and line, where they are known, with the name of an inlined function before them.
    pub place: Option<Rc<str>>,
}

const UNWOUND_BY: [&str; 5] = [".text", ".eh_frame", ".eh_frame_hdr", ".got", ".debug_frame"];

impl Image {
    /// Reads a file. `changed` are functions that may have changed, by name, and how. `None` for what is no program.
    pub fn read(path: &str, changed: Rc<HashMap<String, Change>>) -> Option<Self> {
        let bytes = code::read(Path::new(path)).ok()?;
        let file = code::parse(&bytes).ok()?;
        let section = |name: &'static str| {
            let section = file.section_by_name(name)?;
            Some((name.as_bytes(), (section.address(), section.data().ok()?.into())))
        };
        let sections = UNWOUND_BY.into_iter().filter_map(section).collect();
        let headers = file.elf_program_headers().iter();
        let runs = headers.filter(|header| {
            header.p_type(LittleEndian) == object::elf::PT_LOAD
                && header.p_flags(LittleEndian).0 & object::elf::PF_X.0 != 0
        });
        let code = runs
            .map(|header| (header.p_vaddr(LittleEndian), header.p_offset(LittleEndian), header.p_filesz(LittleEndian)))
            .collect();
        let mut functions: Vec<(u64, u64, Rc<str>)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), readable(symbol.name_bytes().ok()?).into())))
            .collect();
        // Of several names of one function the first, so that both sides have the same.
        functions.sort();
        functions.dedup_by_key(|function| function.0);
        let own = Path::new(path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let lines = Lines::read(&file);
        Some(Self {
            sections,
            code,
            functions,
            unnamed: format!("{own} (no name)").into(),
            changed,
            lines,
            known: RefCell::default(),
        })
    }

    /// Whether its functions have names.
    pub fn has_names(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Where what lies at zero in the file was loaded.
    pub fn base(&self, module: &ProfileModule) -> Option<u64> {
        let holds = |(_, offset, bytes): &&(u64, u64, u64)| {
            // A mapping begins at the page that the code begins in.
            module.offset < offset.saturating_add(*bytes)
                && offset.saturating_sub(module.offset) <= module.to.saturating_sub(module.from)
        };
        let (address, offset, _) = self.code.iter().find(holds)?;
        Some(module.from.wrapping_add(*offset).wrapping_sub(module.offset).wrapping_sub(*address))
    }

    /// What is at an address of the file.
    pub fn frame(&self, address: u64) -> Frame {
        if let Some(known) = self.known.borrow().get(&address) {
            return known.clone();
        }
        let at = self.functions.partition_point(|(begin, ..)| *begin <= address);
        let holds = |(begin, size, _): &&(u64, u64, Rc<str>)| address - begin < (*size).max(1) || *size == 0;
        let function = self.functions[..at].last().filter(holds);
        let name = function.map_or(&self.unnamed, |(_, _, name)| name).clone();
        let frame = Frame {
            change: function.and_then(|(.., name)| self.changed.get(&**name).copied()),
            place: self.lines.as_ref().and_then(|lines| lines.place(address, &name)),
            name,
        };
        self.known.borrow_mut().insert(address, frame.clone());
        frame
    }
}

/// How its stack unwinds.
impl ModuleSectionInfo<Rc<[u8]>> for &Image {
    fn base_svma(&self) -> u64 {
        0
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let (begin, bytes) = self.sections.get(name)?;
        Some(*begin..begin.saturating_add(bytes.len() as u64))
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Rc<[u8]>> {
        self.sections.get(name).map(|(_, bytes)| bytes.clone())
    }
}
