//! What changed between two programs, by what their linkers were given: nothing, or these functions.
//!
//! It is looked at before anything is timed and takes seconds. What cannot be read counts as changed: to call changed code the same would
//! let a regression pass. A panic's line is all that may differ.

pub mod changed;
pub mod names;
pub mod sides;
pub mod units;

use std::path::Path;

use anyhow::{Result, ensure};
use infergate_core::text_file::read_bytes;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectKind, ObjectSection, SectionFlags, elf};

use crate::alike::both;
use crate::relink::{Inputs, Linker};
pub use changed::{Changed, ChangedFunction};
pub use names::readable;
use sides::{Sides, addresses};
use units::Units;

/// No program is larger. A file can be, and take no room on its disk.
const MAX_PROGRAM_BYTES: u64 = 2 << 30;

/// The bytes of an executable.
pub fn read(program: &Path) -> Result<Vec<u8>> {
    read_bytes(program, MAX_PROGRAM_BYTES)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// They were made of the same, but for lines of panics.
    Same,
    /// They were not. What differs; `None` where an executable does not say where its functions are.
    Differ(Option<Changed>),
}

/// Compares two programs by what they were linked of.
///
/// # Errors
/// Why that cannot be: files that are gone, another format, libraries beside the program.
pub fn compare(base: &Linker, head: &Linker) -> Result<Comparison> {
    let (was, is) = both(|| base.inputs(), || head.inputs());
    let (was, is, programs) = (was?, is?, [base.built()?, head.built()?]);
    for program in &programs {
        let file = ElfFile64::<LittleEndian>::parse(&**program)?;
        ensure!(file.kind() == ObjectKind::Dynamic, "it is not position-independent");
    }
    ensure!(
        !was.has_own_libraries() && !is.has_own_libraries(),
        "it looks for libraries at a place of its own (RUNPATH)"
    );
    let sides = sides([&was, &is], &programs)?;
    let mut changed = Changed::between(&sides);
    changed.is_all &= was.options() == is.options();
    if changed.is_all && changed.functions.is_empty() {
        return Ok(Comparison::Same);
    }
    Ok(Comparison::Differ(sides.0.iter().all(|side| !side.addresses.is_empty()).then_some(changed)))
}

/// Base and head, side by side: what each linker was given, and what it made.
///
/// # Errors
/// What cannot be read.
pub fn sides<'data>([base, head]: [&'data Inputs; 2], [was, is]: &'data [Vec<u8>; 2]) -> Result<Sides<'data>> {
    let (of_base, of_head) = both(|| Units::read(&base.objects()), || Units::read(&head.objects()));
    Ok(Sides::new([of_base?, of_head?], [addresses(was)?, addresses(is)?]))
}

/// Whether two executables or libraries load the same bytes at the same places; false for what is none, as a script, which reads others.
pub fn is_loaded_alike(base: &[u8], head: &[u8]) -> bool {
    let loaded = |bytes| {
        let file = ElfFile64::<LittleEndian>::parse(bytes).ok()?;
        let sections = file.sections().filter_map(|section| {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
            let is_loaded = sh_flags.0 & elf::SHF_ALLOC.0 != 0 && section.name_bytes() != Ok(b".note.gnu.build-id");
            is_loaded.then(|| (section.address(), section.size(), sh_flags.0, section.data().ok()))
        });
        Some(sections.collect::<Vec<_>>())
    };
    loaded(base).is_some_and(|was| loaded(head) == Some(was))
}
