//! What changed between two programs: nothing, or a list of functions. The gate finds out before it times anything, which takes seconds.
//!
//! It compares the inputs of both linkers. Code that cannot be read counts as changed, because a regression in code with the same name
//! would pass. Only the line of a panic may differ, if the source's line did not change.

mod changed;
pub mod linked;
mod moved_lines;
mod names;
pub mod units;

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectKind, ObjectSection, SectionFlags, elf};

pub use crate::relink::read;
use crate::relink::{Inputs, Linker};
pub use changed::{Changed, ChangedFunction};
use linked::{Linked, addresses, both, match_units};
use moved_lines::unchanged_lines;
pub use names::readable;
use units::Units;

/// An executable, a library or an object file.
///
/// # Errors
/// Another format than ELF of 64 bits, such as LLVM bitcode.
pub fn parse(file: &[u8]) -> Result<ElfFile64<'_, LittleEndian>> {
    ElfFile64::parse(file).context("it is no ELF file of 64 bits")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// Same inputs, same link.
    Same,
    /// How they differ; `None` for programs that were not built here.
    Differ(Option<Changed>),
}

/// Compares two programs by their linkers' inputs.
///
/// # Errors
/// Files that are missing or of another format, names of functions that were removed, or libraries next to the program.
pub fn compare(base: &Linker, head: &Linker) -> Result<Comparison> {
    let [base_inputs, head_inputs] = both(|| base.inputs(), || head.inputs())?;
    let programs = [base.built()?, head.built()?];
    for program in &programs {
        ensure!(parse(program)?.kind() == ObjectKind::Dynamic, "it is not position-independent");
    }
    ensure!(
        !base_inputs.hides_code() && !head_inputs.hides_code(),
        "its linker leaves out names of functions, or sets a RUNPATH"
    );
    let mut changed = Changed::between(&sides([&base_inputs, &head_inputs], &programs)?);
    changed.is_complete &= base_inputs.options() == head_inputs.options();
    if changed.is_complete && changed.functions.is_empty() {
        return Ok(Comparison::Same);
    }
    Ok(Comparison::Differ(Some(changed)))
}

/// Reads the inputs of both linkers, and which of them are in the programs.
///
/// # Errors
/// A file that cannot be read.
pub fn sides<'data>(
    [base, head]: [&'data Inputs; 2],
    [base_program, head_program]: &'data [Vec<u8>; 2],
) -> Result<[Linked<'data>; 2]> {
    let mut sources: HashMap<String, HashMap<usize, usize>> = HashMap::new();
    // A line that changed keeps its number.
    let mut in_head = |source: &str, line: usize| {
        let unchanged = || unchanged_lines([&base.root, &head.root], source).unwrap_or_default();
        sources.entry(source.to_owned()).or_insert_with(unchanged).get(&line).copied().unwrap_or(line)
    };
    let units =
        both(|| Units::read(&base.objects(), &mut in_head), || Units::read(&head.objects(), &mut |_, line| line))?;
    Ok(match_units(units, [addresses(base_program)?, addresses(head_program)?]))
}

/// Whether two executables or libraries load the same bytes at the same places; false for anything but ELF: a script's bytes do not say
/// what it runs.
pub fn loads_same_bytes(base: &[u8], head: &[u8]) -> bool {
    let loaded = |bytes| {
        let file = parse(bytes).ok()?;
        let sections = file.sections().filter_map(|section| {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
            let is_loaded = sh_flags.0 & elf::SHF_ALLOC.0 != 0 && section.name_bytes() != Ok(b".note.gnu.build-id");
            is_loaded.then(|| (section.address(), section.size(), sh_flags.0, section.data().ok()))
        });
        Some(sections.collect::<Vec<_>>())
    };
    loaded(base).is_some_and(|was| loaded(head) == Some(was))
}
