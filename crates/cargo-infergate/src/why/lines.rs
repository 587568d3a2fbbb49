//! Lines of the source by address, where a build has line tables.

use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;

use addr2line::gimli::{self, EndianReader, LittleEndian};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use super::names::last_part;
use infergate_build::code::readable;

type Reader = EndianReader<LittleEndian, Rc<[u8]>>;

/// The line tables of one program.
pub struct Lines(addr2line::Context<Reader>);

impl Lines {
    /// `None` where there are none.
    pub fn read(file: &ElfFile64<object::LittleEndian>) -> Option<Self> {
        let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let data: Rc<[u8]> = file
                .section_by_name(id.name())
                .and_then(|section| section.uncompressed_data().ok())
                .unwrap_or(Cow::Borrowed(&[]))
                .into();
            Ok(EndianReader::new(data, LittleEndian))
        };
        file.section_by_name(".debug_line")?;
        Some(Self(addr2line::Context::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()?))
    }

    /// `src/step.rs:131`: of the innermost function there that is not the standard library's; `dot at src/step.rs:131` where that one
    /// was inlined into the function `around`.
    pub fn place(&self, address: u64, around: &str) -> Option<Rc<str>> {
        let mut frames = self.0.find_frames(address).skip_all_loads().ok()?;
        let mut found = None;
        while let Ok(Some(frame)) = frames.next() {
            let Some(location) = frame.location else { continue };
            let (Some(file), Some(line)) = (location.file, location.line) else { continue };
            let is_std = is_of_std(file);
            if !is_std || found.is_none() {
                let name = frame.function.and_then(|function| Some(readable(function.raw_name().ok()?.as_bytes())));
                let name = name.as_deref().map(last_part).filter(|name| *name != last_part(around));
                let inlined = name.map_or_else(String::new, |name| format!("{name} at "));
                found = Some(format!("{inlined}{}:{line}", shown(file)).into());
            }
            if !is_std {
                break;
            }
        }
        found
    }
}

/// Whether a file is the standard library's, which each distribution keeps elsewhere. A repository can have a folder `library`, too.
fn is_of_std(file: &str) -> bool {
    let of_std = ["core", "alloc", "std", "stdarch", "portable-simd"].map(|name| format!("/library/{name}/"));
    of_std.iter().any(|folder| file.contains(folder)) || file.starts_with("/rustc/")
}

/// A file as people know it: from its repository on, or from the registry's name of its package, or its last three parts. What lies above
/// may be folders of this machine.
fn shown(file: &str) -> &str {
    let repository = Path::new(file).ancestors().find(|folder| folder.is_absolute() && folder.join(".git").exists());
    if let Some(inside) = repository.and_then(|root| Path::new(file).strip_prefix(root).ok()?.to_str()) {
        return inside;
    }
    let in_registry = file.split_once("/registry/src/").and_then(|(_, inside)| Some(inside.split_once('/')?.1));
    let last = file.rmatch_indices('/').nth(2).filter(|_| file.starts_with('/'));
    in_registry.unwrap_or_else(|| last.map_or(file, |(at, _)| &file[at + 1..]))
}
