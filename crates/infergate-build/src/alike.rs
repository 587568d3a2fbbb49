//! Both sides linked in one order, so that what did not change lies at the same address in both.
//!
//! Where a function starts decides how fast a short loop in it runs, and a linker moves all functions behind one that grew. Linked
//! in one order, functions that are the same come first and lie at the same addresses in base and head: whatever placement costs them
//! cancels in the ratio. What did change follows behind a filler. How fast it runs depends mostly on where it starts within the 64 bytes of
//! a cache line, so each side is linked once for each of [`PLACEMENTS`] starts, and every block times all of them.

mod constants;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use object::read::elf::ElfFile64;
use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, LittleEndian, Object as _, ObjectSection, SectionFlags, SectionKind,
    SymbolFlags, SymbolKind, SymbolScope, elf,
};

use super::relink::{Inputs, Linker};
use crate::code::sides::{Addresses, Linked, Sides, addresses};
use crate::code::units::Unit;
use crate::code::{read, sides};
use constants::ConstantNames;

/// Starts of the changed functions within a cache line, one link of each side for each.
pub const PLACEMENTS: usize = 4;

const LINE_BYTES: u64 = 64;
/// Functions start at multiples of this many bytes.
const FUNCTION_ALIGN: u64 = 16;
const PAGE_BYTES: u64 = 4096;

/// The order of the functions of one side, for the linker.
#[derive(Default)]
struct Order {
    /// Names, mangled, first to last. Those of [`pads`](Self::pads) are among them.
    names: Vec<String>,
    /// Bytes that are never run.
    pads: Vec<Pad>,
}

/// Padding, as long as what the other side has more.
struct Pad {
    name: String,
    bytes: u64,
    align: u64,
}

/// The functions of one symbol: one, or the copies that the compiler made for several object files. The linker orders them together.
type Copies<'s, 'data> = Vec<&'s Unit<'data>>;

/// The functions of base and head.
#[derive(Default)]
struct Functions<'s, 'data> {
    /// Those that both have with the same instructions; those of which there are copies last, since the linker may leave some out.
    same: Vec<[Copies<'s, 'data>; 2]>,
    /// Those with other ones, or that one side lacks.
    changed: Vec<[Option<&'s Unit<'data>>; 2]>,
    /// Those of which neither side says which is meant.
    ambiguous: [Copies<'s, 'data>; 2],
}

impl<'s, 'data> Functions<'s, 'data> {
    fn of(Sides(sides): &'s Sides<'data>) -> Self {
        let mut found = Self::default();
        let names: BTreeSet<&String> = sides.iter().flat_map(|side| side.functions.keys()).collect();
        for name in names {
            let [base, mut head] = sides.each_ref().map(|side| copies(side, name));
            let mut left: [Vec<Copies>; 2] = [Vec::new(), Vec::new()];
            for copies in base {
                let hashes = |copies: &Copies| copies.iter().map(|unit| unit.own_hash).collect::<Vec<_>>();
                match head.iter().position(|others| hashes(others) == hashes(&copies)) {
                    Some(at) => found.same.push([copies, head.remove(at)]),
                    None => left[0].push(copies),
                }
            }
            left[1] = head;
            match left.each_ref().map(|copies| copies.concat()).each_ref().map(Vec::as_slice) {
                [[] | [_], [] | [_]] => found.changed.push(left.map(|copies| copies.concat().first().copied())),
                _ => found.ambiguous.iter_mut().zip(left).for_each(|(all, left)| all.extend(left.concat())),
            }
        }
        found.changed.retain(|both| both.iter().any(Option::is_some));
        found.same.sort_by_key(|[base, _]| base.len() > 1);
        found
    }

    /// The order of base, which is side 0, or of head:
    /// 1. the same functions, shuffled by `seed`, and those of which there are copies;
    /// 2. the filler, which sets the placement;
    /// 3. functions that changed, by name, each padded to the longer side;
    /// 4. ambiguous ones.
    fn order(&self, side: usize, seed: u64, placement: usize) -> Order {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut same: Vec<&[Copies; 2]> = self.same.iter().collect();
        random.shuffle(&mut same[..self.same.partition_point(|[base, _]| base.len() == 1)]);
        let mut order = Order::default();
        order.add(same.into_iter().flat_map(|both| both[side].iter().copied()));
        let bytes = FUNCTION_ALIGN * placement as u64 + LINE_BYTES * random.u64(1..PAGE_BYTES / LINE_BYTES);
        order.pad(Pad { name: "infergate_filler".to_owned(), bytes, align: PAGE_BYTES });
        for (at, both) in self.changed.iter().enumerate() {
            let (own, other) = (both[side], both[1 - side]);
            order.add(own.into_iter());
            let bytes = |function: Option<&Unit>| function.map_or(0, |function| function.bytes);
            let missing = bytes(other).saturating_sub(bytes(own));
            if missing > 0 {
                // In place of a function that is missing, padding starts as that would.
                let align = other.filter(|_| own.is_none()).map_or(1, |other| other.align.min(FUNCTION_ALIGN));
                order.pad(Pad { name: format!("infergate_pad_{at}"), bytes: missing, align });
            }
        }
        order.add(self.ambiguous[side].iter().copied());
        order
    }
}

/// The functions of a name, by symbol, in the order of the object files.
fn copies<'s, 'data>(side: &'s Linked<'data>, name: &String) -> Vec<Copies<'s, 'data>> {
    let mut found: Vec<Copies> = Vec::new();
    for unit in side.functions.get(name).into_iter().flatten().map(|function| side.unit(*function)) {
        match found.iter_mut().find(|copies| copies[0].symbols == unit.symbols) {
            Some(copies) => copies.push(unit),
            None => found.push(vec![unit]),
        }
    }
    found
}

impl Order {
    fn add<'s, 'data: 's>(&mut self, functions: impl Iterator<Item = &'s Unit<'data>>) {
        let symbols = functions.flat_map(|function| &function.symbols);
        self.names.extend(symbols.map(|name| String::from_utf8_lossy(name).into_owned()));
    }

    fn pad(&mut self, pad: Pad) {
        self.names.push(pad.name.clone());
        self.pads.push(pad);
    }
}

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

/// What is linked for one side.
pub struct LinkJob<'a> {
    pub linker: &'a Linker,
    /// Where each placement goes.
    pub files: Vec<PathBuf>,
    /// For object files and lists that the links need.
    pub folder: PathBuf,
}

/// Links both sides once for each of their files, one a placement. Gives how many functions of base lie at the same address in head with the
/// same instructions, and how many base has.
///
/// # Errors
/// Why they cannot be laid out alike: no names of functions, a linker other than lld; and when it was cancelled.
pub fn link(base: &LinkJob, head: &LinkJob, seed: u64) -> Result<(usize, usize)> {
    for side in [base, head] {
        fs::create_dir_all(&side.folder).with_context(|| format!("{}: cannot be made", side.folder.display()))?;
    }
    let (of_base, of_head) = both(|| base.linker.inputs(), || head.linker.inputs());
    let (of_base, of_head, programs) = (of_base?, of_head?, [base.linker.built()?, head.linker.built()?]);
    let section_addresses = section_addresses(&programs)?;
    let sides = sides([&of_base, &of_head], &programs)?;
    let functions = Functions::of(&sides);
    ensure!(!functions.same.is_empty(), "the programs do not name their functions");
    let [base_named, head_named] = sides.0.each_ref().map(ConstantNames::of);
    let link_side = |side: &LinkJob, number: usize, inputs: &Inputs, named: [&ConstantNames; 2]| {
        let words = side.named_inputs(inputs, named[0])?;
        let orders = (0..side.files.len()).map(|placement| functions.order(number, seed, placement));
        side.link_all(&words, &named[0].link_order(named[1]), orders, section_addresses)
    };
    let (was, is) = both(
        || link_side(base, 0, &of_base, [&base_named, &head_named]),
        || link_side(head, 1, &of_head, [&head_named, &base_named]),
    );
    is.and(was)?;
    let (base_program, head_program) = (read(&base.files[0])?, read(&head.files[0])?);
    let (of_base, of_head) = (addresses(&base_program)?, addresses(&head_program)?);
    let at_same_address = |[base, head]: &[Copies; 2]| {
        let found = |all: &Addresses, copies: &Copies| all.get(copies[0].symbols.first()?).cloned();
        found(&of_base, base)
            .filter(|addresses| found(&of_head, head).as_ref() == Some(addresses))
            .map_or(0, |all| all.len())
    };
    let all: BTreeSet<&u64> = sides.0[0].addresses.values().flatten().collect();
    Ok((functions.same.iter().map(at_same_address).sum(), all.len()))
}

/// Does both at once.
pub fn both<B, H: Send>(base: impl FnOnce() -> B, head: impl FnOnce() -> H + Send) -> (B, H) {
    thread::scope(|scope| {
        let of_head = scope.spawn(head);
        (base(), of_head.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Addresses at which both sides' constants and code can start.
///
/// # Errors
/// What is not for x86-64, or has constants behind its code.
fn section_addresses(programs: &[Vec<u8>; 2]) -> Result<(u64, u64)> {
    /// Room for what orders and pads add.
    const SPARE_BYTES: u64 = 64 << 10;
    let (mut constants, mut between) = (0, 0);
    for program in programs {
        let file = ElfFile64::<LittleEndian>::parse(&**program).context("it is no ELF executable of 64 bits")?;
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
    /// The words of the linker's command with object files whose constants have names.
    fn named_inputs(&self, inputs: &Inputs, named: &ConstantNames) -> Result<Vec<String>> {
        let folder = self.folder.join("objects");
        fs::create_dir_all(&folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
        let (mut words, mut count, mut in_whole_archive) = (Vec::new(), 0, false);
        for (word, objects) in &inputs.words {
            in_whole_archive =
                if word.ends_with("-whole-archive") { !word.ends_with("-no-whole-archive") } else { in_whole_archive };
            let first = count;
            count += objects.len();
            let is_archive = !word.ends_with(".o");
            // Of compiler_builtins the linker takes what is nowhere else, so it has to see the archive.
            if objects.is_empty()
                || word.starts_with('-')
                || is_archive && (in_whole_archive || word.contains("compiler_builtins"))
            {
                words.push(word.clone());
                continue;
            }
            words.extend(is_archive.then(|| "-Wl,--start-lib".to_owned()));
            for (number, object) in (first..).zip(objects) {
                let path = folder.join(format!("{number}.o"));
                let bytes = named.with_names(number, object);
                fs::write(&path, bytes.as_deref().unwrap_or(object))
                    .with_context(|| format!("{}: cannot be written", path.display()))?;
                words.push(path.to_string_lossy().into_owned());
            }
            words.extend(is_archive.then(|| "-Wl,--end-lib".to_owned()));
        }
        Ok(words)
    }

    fn link_all(
        &self,
        words: &[String],
        constants: &[String],
        orders: impl Iterator<Item = Order>,
        (rodata, text): (u64, u64),
    ) -> Result<()> {
        for (order, to) in orders.zip(&self.files) {
            let (list, pads) = (self.folder.join("order"), self.folder.join("pads.o"));
            fs::write(&list, [constants, &order.names].concat().join("\n")).context("the order cannot be written")?;
            fs::write(&pads, object_of(&order.pads)?).context("the pads cannot be written")?;
            let more = [
                pads.to_string_lossy().into_owned(),
                format!("-Wl,--symbol-ordering-file={}", list.display()),
                "-Wl,--no-warn-symbol-ordering,-z,separate-loadable-segments".to_owned(),
                format!("-Wl,--section-start=.rodata={rodata:#x},--section-start=.text={text:#x}"),
            ];
            if !self.linker.link(&[words, &more].concat(), &self.folder, to)? {
                bail!("this linker does not order functions (lld does)");
            }
        }
        Ok(())
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
        Linker::of(&fs::read_to_string(printed).expect("printed"), folder.join("program")).expect("a command")
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
                let of_symbols = addresses(&bytes).expect("functions");
                let of = |name: &str| {
                    let is_it = |symbol: &&&[u8]| crate::code::readable(symbol) == format!("program::{name}");
                    of_symbols.keys().find(is_it).map(|symbol| of_symbols[symbol][0])
                };
                ["changed", "first", "last"].map(of)
            });
            assert_eq!(places[0], places[1], "each starts at one address in both");
            phases.push(places[0][0].expect("it is there") % LINE_BYTES);
        }
        phases.sort_unstable();
        assert_eq!(phases, [0, 16, 32, 48]);
    }
}
