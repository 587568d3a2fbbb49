//! Both sides linked in one order, so that what did not change lies at the same address in both.
//!
//! Where a function starts decides how fast a short loop in it runs, and a linker moves all functions after one that grew. Linked in one
//! order, functions that are the same come first and lie at the same addresses in base and head: whatever placement costs them cancels in
//! the ratio. Changed functions follow after a filler. How fast one runs depends mostly on where it starts within the 64 bytes of a cache
//! line, so each side is linked once for each of [`PLACEMENTS`] starts; a block times all of them, or one drawn at random if processes load
//! slowly or the budget is short.

mod layout;
mod symbols;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, Object as _, ObjectSection, ObjectSymbol, SectionFlags, SectionKind,
    SymbolFlags, SymbolKind, SymbolScope, elf,
};

use super::checkout_folder;
use super::relink::{Inputs, Linker};
use crate::code::linked::{Linked, both};
use crate::code::{parse, read, sides};
use layout::{Layout, Pad, Section, symbol};
use symbols::with_symbols;

/// Starts of the changed functions within a cache line, one link of each side for each.
pub const PLACEMENTS: usize = 4;

/// An object file of these pads, for x86-64.
fn object_of(pads: &[Pad]) -> Result<Vec<u8>, object::write::Error> {
    const TRAP: u8 = 0xcc;
    let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    for pad in pads {
        let section = file.add_section(Vec::new(), format!(".text.{}", pad.name).into_bytes(), SectionKind::Text);
        let flags = elf::SHF_ALLOC | elf::SHF_EXECINSTR | elf::SHF_GNU_RETAIN;
        file.section_mut(section).flags = SectionFlags::Elf { sh_type: elf::SHT_PROGBITS, sh_flags: flags };
        file.append_section_data(section, &vec![TRAP; pad.bytes as usize], pad.align);
        file.add_symbol(Symbol {
            name: pad.name.clone().into_bytes(),
            value: 0,
            size: pad.bytes,
            kind: SymbolKind::Text,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
    }
    file.write()
}

/// The links of one side.
pub struct LinkJob<'a> {
    pub linker: &'a Linker,
    /// Where each placement goes.
    pub files: Vec<PathBuf>,
    /// For object files and lists that the links need.
    pub folder: PathBuf,
}

/// Links both sides once for each of their files, one a placement. Gives how many functions of base lie at the same address in head with
/// the same instructions, and how many base has.
///
/// # Errors
/// Why they cannot be laid out alike: no names of functions, a linker other than lld; the user ended the run.
pub fn link(base: &LinkJob, head: &LinkJob, seed: u64) -> Result<(usize, usize)> {
    let [of_base, of_head] = both(|| base.linker.inputs(), || head.linker.inputs())?;
    let programs = [base.linker.built()?, head.linker.built()?];
    let (rodata, text) = section_addresses(&programs)?;
    let sides = sides([&of_base, &of_head], &programs)?;
    let [base_code, head_code] = &sides;
    let [(base_words, in_base), (head_words, in_head)] =
        both(|| base.sections(&of_base, base_code), || head.sections(&of_head, head_code))?;
    let layout = Layout::of([in_base, in_head]);
    let link_all = |job: &LinkJob, side: usize, words: &[String]| -> Result<()> {
        for (placement, to) in job.files.iter().enumerate() {
            let order = layout.order(side, seed, placement);
            let (list, pads) = (job.folder.join("order"), job.folder.join("pads.o"));
            fs::write(&list, order.symbols.join("\n")).context("the order cannot be written")?;
            fs::write(&pads, object_of(&order.pads)?).context("the pads cannot be written")?;
            let more = [
                pads.to_string_lossy().into_owned(),
                "-Xlinker".to_owned(),
                format!("--symbol-ordering-file={}", list.display()),
                "-Wl,--no-warn-symbol-ordering,-z,separate-loadable-segments".to_owned(),
                format!("-Wl,--section-start=.rodata={rodata:#x},--section-start=.text={text:#x}"),
            ];
            let is_linked = job.linker.link(&[words, &more].concat(), &job.folder, to)?;
            ensure!(is_linked, "this linker does not order functions (lld does)");
        }
        Ok(())
    };
    both(|| link_all(base, 0, &base_words), || link_all(head, 1, &head_words))?;
    let (base_program, head_program) = (read(&base.files[0])?, read(&head.files[0])?);
    Ok(layout.alike([&all_symbols(&base_program)?, &all_symbols(&head_program)?]))
}

fn all_symbols(program: &[u8]) -> Result<HashMap<&[u8], u64>> {
    let file = parse(program)?;
    Ok(file.symbols().map(|symbol| Ok((symbol.name_bytes()?, symbol.address()))).collect::<object::Result<_>>()?)
}

/// Addresses at which both sides' constants and code can start.
///
/// # Errors
/// A program that is not for x86-64, or has constants after its code.
fn section_addresses(programs: &[Vec<u8>; 2]) -> Result<(u64, u64)> {
    /// Room for what orders and pads add.
    const SPARE_BYTES: u64 = 64 << 10;
    let (mut constants, mut between) = (0, 0);
    for program in programs {
        let file = parse(program)?;
        ensure!(file.architecture() == Architecture::X86_64, "functions are ordered on x86-64 alone");
        let start = |name: &str| file.section_by_name(name).map_or(0, |section| section.address());
        let (rodata, text) = (start(".rodata"), start(".text"));
        let bytes = text.checked_sub(rodata).context("this linker puts constants behind the code (lld does not)")?;
        (constants, between) = (rodata.max(constants), between.max(bytes));
    }
    let constants = (constants + SPARE_BYTES).next_multiple_of(SPARE_BYTES);
    Ok((constants, (constants + between + SPARE_BYTES).next_multiple_of(SPARE_BYTES)))
}

impl LinkJob<'_> {
    /// The arguments of the linker with object files in which sections have a symbol to be placed by, and the sections that the linker
    /// takes, by a first link.
    fn sections<'s>(&self, inputs: &Inputs, code: &'s Linked) -> Result<(Vec<String>, Vec<Section<'s>>)> {
        let mut sections = layout::sections(code);
        let mut placed: HashMap<usize, Vec<(usize, String)>> = HashMap::new();
        for (object, section) in sections.iter().map(|section| section.id) {
            placed.entry(object).or_default().push((section, symbol((object, section))));
        }
        let folder = self.folder.join("objects");
        checkout_folder::make(&folder)?;
        let (mut words, mut count, mut in_whole_archive) = (Vec::new(), 0, false);
        for (word, objects) in &inputs.words {
            if word.ends_with("-whole-archive") {
                in_whole_archive = !word.ends_with("-no-whole-archive");
            }
            let first = count;
            count += objects.len();
            if objects.is_empty() || word.starts_with('-') {
                words.push(word.clone());
                continue;
            }
            // The linker takes only the object files of an archive that it needs.
            let is_library = !word.ends_with(".o") && !in_whole_archive;
            words.extend(is_library.then(|| "-Wl,--start-lib".to_owned()));
            for (number, object) in (first..).zip(objects) {
                let path = folder.join(format!("{number}.o"));
                let bytes = placed.get(&number).and_then(|symbols| with_symbols(object, symbols));
                fs::write(&path, bytes.as_deref().unwrap_or(object))
                    .with_context(|| format!("{}: cannot be written", path.display()))?;
                words.push(path.to_string_lossy().into_owned());
            }
            words.extend(is_library.then(|| "-Wl,--end-lib".to_owned()));
        }
        let tried = &self.files[0];
        ensure!(self.linker.link(&words, &self.folder, tried)?, "the program cannot be linked again");
        let program = read(tried)?;
        let taken = all_symbols(&program)?;
        sections.retain(|section| taken.contains_key(symbol(section.id).as_bytes()));
        Ok((words, sections))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// A program whose `changed` has another body, and with it one more constant before all others.
    fn compile(folder: &Path, body: &str) -> Linker {
        let source = folder.join("main.rs");
        fs::create_dir_all(folder).expect("a folder");
        let text = format!(
            "#[inline(never)] fn changed(n: u64) -> u64 {{ {body} }}\n\
             #[inline(never)] fn first(n: u64) -> u64 {{ (0..n).map(|at| at.rotate_left(7) ^ n).sum() }}\n\
             #[inline(never)] fn last(text: &str) -> usize {{ text.split('x').map(str::len).max().expect(\"a part\") }}\n\
             fn main() {{ let n = std::env::args().count() as u64; println!(\"{{}}\", first(n) + changed(n) + last(\"axb\") as u64); }}\n"
        );
        fs::write(&source, text).expect("a source");
        let printed = folder.join("link-args");
        let compiled = Command::new("rustc")
            .current_dir(folder)
            .args([
                "--edition=2024",
                "-O",
                "--crate-name=program",
                "-Csave-temps",
                "-Ccodegen-units=4",
                "main.rs",
                "--out-dir",
            ])
            .arg(folder)
            .arg(format!("--print=link-args={}", printed.display()))
            .status();
        assert!(compiled.expect("rustc").success());
        let printed = fs::read_to_string(printed).expect("printed");
        Linker::of(&printed, folder.join("program"), folder.to_owned()).expect("a command")
    }

    #[test]
    fn what_did_not_change_lies_at_one_address_and_what_did_at_each_placement() {
        let folder = tempfile::tempdir().expect("a folder");
        let (base, head) = (folder.path().join("base"), folder.path().join("head"));
        let was = compile(&base, "n * 3");
        let is = compile(&head, "assert!(n < 1000, \"{n} is too large, of {:?}\", std::env::args()); n * 5 + n.pow(3)");
        let side = |linker, name: &str| {
            let folder = folder.path().join(name);
            fs::create_dir_all(&folder).expect("a folder");
            let files = (0..PLACEMENTS).map(|at| folder.join(format!("program-{at}"))).collect();
            LinkJob { linker, files, folder }
        };
        let (base, head) = (side(&was, "b"), side(&is, "h"));
        let (same, functions) = link(&base, &head, 1).expect("lld");
        assert!(same * 100 > functions * 97, "{same} of {functions}");
        let mut phases = Vec::new();
        for (base, head) in base.files.iter().zip(&head.files) {
            let places = [base, head].map(|path| {
                assert!(Command::new(path).status().expect("it runs").success());
                let bytes = read(path).expect("a program");
                let of_symbols = crate::code::linked::addresses(&bytes).expect("functions");
                let of = |name: &str| {
                    let is_it = |symbol: &&&[u8]| crate::code::readable(symbol) == format!("program::{name}");
                    of_symbols.keys().find(is_it).map(|symbol| of_symbols[symbol][0])
                };
                ["changed", "first", "last"].map(of)
            });
            assert_eq!(places[0], places[1], "each starts at one address in both");
            phases.push(places[0][0].expect("it is there") % 64);
        }
        phases.sort_unstable();
        assert_eq!(phases, [0, 16, 32, 48]);
    }
}
