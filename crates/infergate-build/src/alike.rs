//! Both sides linked in one order, so that what did not change lies at the same address in both.
//!
//! Where a function starts decides how fast a short loop in it runs, and a linker moves all functions behind one that grew. Linked
//! in one order, functions that are the same come first and lie at the same addresses in base and head: whatever placement costs them
//! cancels in the ratio. What did change follows behind a filler. Almost all of its luck is its start modulo the 64 bytes of a
//! cache line, so each side is linked once for each of [`PLACEMENTS`] starts, and every block times all of them.

mod constants;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use object::read::archive::ArchiveFile;
use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf,
};

use super::relink::Linker;
use crate::code::image::Image;
use crate::code::{functions, readable};
use constants::Named;

/// Starts of the changed functions within a cache line, one link of each side for each.
pub const PLACEMENTS: usize = 4;

const LINE_BYTES: u64 = 64;
/// Functions start at multiples of this many bytes.
const FUNCTION_ALIGN: u64 = 16;
const PAGE_BYTES: u64 = 4096;

/// The order of the functions of one side, for the linker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Names, mangled, first to last. Those of [`pads`](Self::pads) are among them.
    pub names: Vec<String>,
    /// Bytes that are never run.
    pub pads: Vec<Pad>,
}

/// A stretch of bytes that stands for what the other side has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pad {
    pub name: String,
    pub bytes: u64,
    pub align: u64,
}

/// The functions of one side under one name: its symbols, where each copy starts, and its bytes.
struct Group {
    symbols: Vec<String>,
    copies: usize,
    bytes: u64,
    align: u64,
    shape: u64,
}

/// The functions of both sides by name.
pub struct Functions {
    base: BTreeMap<String, Group>,
    head: BTreeMap<String, Group>,
    /// Those that both have with the same code.
    same: Vec<String>,
    /// Those that differ, or that one side lacks.
    rest: Vec<String>,
    /// Names that stand for several functions: linkers order these by themselves.
    several: Vec<String>,
}

impl Functions {
    pub fn of(base: &Image, head: &Image) -> Self {
        let (base, head) = (groups(base, head), groups(head, base));
        let all: BTreeSet<&String> = base.keys().chain(head.keys()).collect();
        let (mut same, mut rest, mut several) = (Vec::new(), Vec::new(), Vec::new());
        for key in all {
            let (was, is) = (base.get(key), head.get(key));
            let code = |group: &Group| (group.bytes, group.shape);
            let list = if [was, is].into_iter().flatten().any(|group| group.copies > 1) {
                &mut several
            } else if was.map(code) == is.map(code) {
                &mut same
            } else {
                &mut rest
            };
            list.push(key.clone());
        }
        Self { base, head, same, rest, several }
    }

    /// Base's order and head's: the same functions in an order drawn from `seed`, the filler, the rest by name, each padded to the longer
    /// side, then names that stand for several functions.
    pub fn orders(&self, seed: u64, placement: usize) -> (Order, Order) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut same = self.same.clone();
        random.shuffle(&mut same);
        let bytes = FUNCTION_ALIGN * placement as u64 + LINE_BYTES * random.u64(1..PAGE_BYTES / LINE_BYTES);
        let filler = Pad { name: "infergate_filler".to_owned(), bytes, align: PAGE_BYTES };
        let side = |own: &BTreeMap<String, Group>, other: &BTreeMap<String, Group>| {
            let symbols = |key: &String| own.get(key).map(|group| &group.symbols).into_iter().flatten().cloned();
            let mut order = Order { names: same.iter().flat_map(symbols).collect(), pads: Vec::new() };
            order.add(filler.clone());
            for (at, key) in self.rest.iter().enumerate() {
                order.names.extend(symbols(key));
                let bytes = |side: &BTreeMap<String, Group>| side.get(key).map_or(0, |group| group.bytes);
                let missing = bytes(other).saturating_sub(bytes(own));
                if missing > 0 {
                    // Behind a function it goes on where that ends; in place of one it starts as that does.
                    let align = if own.contains_key(key) { 1 } else { other[key].align };
                    order.add(Pad { name: format!("infergate_pad_{at}"), bytes: missing, align });
                }
            }
            order.names.extend(self.several.iter().flat_map(symbols));
            order
        };
        (side(&self.base, &self.head), side(&self.head, &self.base))
    }
}

impl Order {
    fn add(&mut self, pad: Pad) {
        self.names.push(pad.name.clone());
        self.pads.push(pad);
    }
}

/// The functions of `own` by a name that both sides share: with its hash where `other` has it too, else without.
fn groups(own: &Image, other: &Image) -> BTreeMap<String, Group> {
    let theirs: HashSet<&[u8]> = other.symbols.iter().map(|symbol| symbol.name).collect();
    let mut raw: HashMap<u64, Vec<&[u8]>> = HashMap::new();
    for symbol in own.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Text) {
        raw.entry(symbol.address).or_default().push(symbol.name);
    }
    let mut found: BTreeMap<String, Group> = BTreeMap::new();
    for function in functions::all(own) {
        let Some(symbols) = raw.get(&function.address) else { continue };
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let shared = function.names.iter().find(|name| theirs.contains(*name));
        let key = shared.map_or_else(|| readable(function.names[0]), |name| text(name));
        let group = found.entry(key).or_insert_with(|| Group {
            symbols: Vec::new(),
            copies: 0,
            bytes: 0,
            align: FUNCTION_ALIGN.min(1 << function.address.trailing_zeros()),
            shape: function.shape,
        });
        group.symbols.extend(symbols.iter().map(|name| text(name)));
        group.copies += 1;
        group.bytes += function.size;
    }
    found
}

/// How many functions of base lie at the same address in head, with the same code; and how many base has.
fn alike(base: &Image, head: &Image) -> (usize, usize) {
    let (was, is) = (functions::all(base), functions::all(head));
    let there: HashMap<u64, (u64, u64)> =
        is.iter().map(|function| (function.address, (function.size, function.shape))).collect();
    let same = was.iter().filter(|function| there.get(&function.address) == Some(&(function.size, function.shape)));
    (same.count(), was.len())
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
pub struct Side<'a> {
    pub linker: &'a Linker,
    /// Where each placement goes.
    pub files: Vec<PathBuf>,
    /// For object files and lists that the links need.
    pub folder: PathBuf,
}

/// Links both sides once for each of their files, one a placement. Gives how many functions of base lie at the same address in head, with the
/// same code; and how many base has.
///
/// # Errors
/// Why they cannot be laid out alike: no names of functions, a linker other than lld; and when it was cancelled.
pub fn link(base: &Side, head: &Side, seed: u64, cancelled: &AtomicBool) -> Result<(usize, usize)> {
    for side in [base, head] {
        fs::create_dir_all(&side.folder).with_context(|| format!("{}: cannot be made", side.folder.display()))?;
    }
    let images = [base, head].map(|side| side.linker.unstripped(&side.folder, cancelled));
    let [was, is] = images;
    let (was, is) = (was?, is?);
    let parse = |bytes| Image::parse(bytes).map_err(anyhow::Error::msg);
    let (was, is) = (parse(&was)?, parse(&is)?);
    ensure!(was.is_x86_64(), "functions are ordered on x86-64 alone");
    let functions = Functions::of(&was, &is);
    ensure!(!functions.same.is_empty(), "the programs do not name their functions");
    let starts = starts(&was, &is).context("this linker puts constants behind the code (lld does not)")?;
    let (of_base, of_head) = both(|| base.named_inputs(), || head.named_inputs());
    let ((base_words, base_named), (head_words, head_named)) = (of_base?, of_head?);
    let constants = |own: &Named, other: &Named| {
        let (shared, rest) = own.shared_and_rest(other);
        [shared, rest].concat()
    };
    let base_constants = constants(&base_named, &head_named);
    let head_constants = constants(&head_named, &base_named);
    let orders: Vec<(Order, Order)> =
        (0..base.files.len()).map(|placement| functions.orders(seed, placement)).collect();
    let of_base = || {
        let orders = orders.iter().map(|(order, _)| order);
        base.link_all(&base_words, &base_constants, orders, starts, cancelled)
    };
    let (of_base, of_head) = both(of_base, || {
        let orders = orders.iter().map(|(_, order)| order);
        head.link_all(&head_words, &head_constants, orders, starts, cancelled)
    });
    of_head.and(of_base)?;
    let (first, second) = (crate::code::read(&base.files[0])?, crate::code::read(&head.files[0])?);
    Ok(alike(&parse(&first)?, &parse(&second)?))
}

/// Does both at once.
pub fn both<B, H: Send>(base: impl FnOnce() -> B, head: impl FnOnce() -> H + Send) -> (B, H) {
    thread::scope(|scope| {
        let of_head = scope.spawn(head);
        (base(), of_head.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Addresses at which both sides' constants and code can start.
fn starts(base: &Image, head: &Image) -> Option<(u64, u64)> {
    /// Room for what orders and pads add.
    const SPARE_BYTES: u64 = 64 << 10;
    let start = |image: &Image, name: &[u8]| {
        image.sections.iter().find(|section| section.name == name).map(|section| section.address)
    };
    let (mut constants, mut between) = (0, 0);
    for image in [base, head] {
        let (rodata, text) = (start(image, b".rodata")?, start(image, b".text")?);
        (constants, between) = (rodata.max(constants), between.max(text.checked_sub(rodata)?));
    }
    let constants = (constants + SPARE_BYTES).next_multiple_of(SPARE_BYTES);
    Some((constants, (constants + between + SPARE_BYTES).next_multiple_of(SPARE_BYTES)))
}

impl Side<'_> {
    /// The words of the linker's command with inputs whose constants have names, and these.
    fn named_inputs(&self) -> Result<(Vec<String>, Named)> {
        let folder = self.folder.join("objects");
        fs::create_dir_all(&folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
        let (mut words, mut named, mut count, mut is_whole) = (Vec::new(), Named::default(), 0, false);
        let mut put = |bytes: &[u8]| -> Result<String> {
            count += 1;
            let path = folder.join(format!("{count}.o"));
            fs::write(&path, bytes).with_context(|| format!("{}: cannot be written", path.display()))?;
            Ok(path.to_string_lossy().into_owned())
        };
        for word in self.linker.arguments() {
            is_whole = if word.ends_with("-whole-archive") { !word.ends_with("-no-whole-archive") } else { is_whole };
            let (path, is_archive) = (Path::new(word), word.ends_with(".rlib") && !is_whole);
            // Its functions may be there twice; the linker chooses.
            let is_own = !word.contains("compiler_builtins");
            if word.ends_with(".o") && path.is_file() {
                match named.name_all(&crate::code::read(path)?) {
                    Some(object) => words.push(put(&object)?),
                    None => words.push(word.clone()),
                }
            } else if is_archive && is_own && path.is_file() {
                let bytes = crate::code::read(path)?;
                let archive = ArchiveFile::parse(&*bytes).with_context(|| format!("{word}: cannot be read"))?;
                words.push("-Wl,--start-lib".to_owned());
                for member in archive.members() {
                    let member = member.with_context(|| format!("{word}: cannot be read"))?;
                    if member.name().ends_with(b".o") {
                        let object = member.data(&*bytes).with_context(|| format!("{word}: cannot be read"))?;
                        words.push(put(named.name_all(object).as_deref().unwrap_or(object))?);
                    }
                }
                words.push("-Wl,--end-lib".to_owned());
            } else {
                words.push(word.clone());
            }
        }
        Ok((words, named))
    }

    fn link_all<'o>(
        &self,
        words: &[String],
        constants: &[String],
        orders: impl Iterator<Item = &'o Order>,
        (rodata, text): (u64, u64),
        cancelled: &AtomicBool,
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
            if !self.linker.link(&[words, &more].concat(), &self.folder, to, cancelled)? {
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
            Side { linker, files, folder }
        };
        let (base, head) = (side(&was, "b"), side(&is, "h"));
        let (same, functions) = link(&base, &head, 1, &AtomicBool::new(false)).expect("lld");
        assert!(same * 100 > functions * 97, "{same} of {functions}");
        let mut phases = Vec::new();
        for (base, head) in base.files.iter().zip(&head.files) {
            let places = [base, head].map(|path| {
                assert!(Command::new(path).status().expect("it runs").success());
                let bytes = crate::code::read(path).expect("a program");
                let image = Image::parse(&bytes).expect("an image");
                let of = |name: &str| {
                    let is_it =
                        |symbol: &&crate::code::image::Symbol| readable(symbol.name) == format!("program::{name}");
                    image.symbols.iter().find(is_it).map(|symbol| symbol.address)
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
