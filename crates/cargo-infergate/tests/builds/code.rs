//! What changed between two programs that the compiler of these tests builds in folders of different length.

mod beside;
mod coverage;
mod linked;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use infergate_build::code::linked::{Addresses, match_units};
use infergate_build::code::units::Units;
use infergate_build::code::{Changed, Comparison, compare, loads_same_bytes};
use infergate_build::relink::Linker;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, SectionFlags, elf};
use tempfile::TempDir;

/// A program with each kind of thing that a change can be in: code, a number, a table, a string, a `match` that becomes a table, a
/// virtual function, an initial value, data from a file, and places where it can panic.
const PROGRAM: &str = include_str!("code/program.rs");

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// How what `source` becomes is linked, in the folder `name`.
    fn build(&self, name: &str, source: &str, flags: &[&str]) -> Linker {
        self.write(&format!("{name}/program.rs"), source);
        let data = Path::new(name).join("data.txt");
        if !self.0.path().join(&data).exists() {
            self.write(&data.to_string_lossy(), "some data that is in the program");
        }
        let folder = self.0.path().join(name);
        let printed = folder.join("link-args");
        let mut rustc = Command::new("rustc");
        rustc.current_dir(&folder).args(["--edition=2021", "-Ccodegen-units=1", "-Csave-temps", "program.rs"]);
        rustc.arg("--out-dir").arg(&folder).arg(format!("--print=link-args={}", printed.display()));
        // The last of several levels counts.
        let output = rustc.arg("-Copt-level=3").args(flags).output().expect("rustc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = fs::read_to_string(printed).expect("printed");
        Linker::of(&printed, folder.join("program"), folder).expect("a command")
    }
}

/// The program, and what `source` becomes in a folder of another length.
fn both(source: &str) -> (Folder, Linker, Linker) {
    let folder = Folder::new();
    let base = folder.build("base", PROGRAM, &[]);
    let head = folder.build("a/much/longer/folder/for/head", source, &[]);
    (folder, base, head)
}

#[track_caller]
fn difference(base: &Linker, head: &Linker) -> Changed {
    match compare(base, head).expect("two programs") {
        Comparison::Differ(Some(changed)) => changed,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn replaced(from: &str, to: &str) -> String {
    assert_eq!(PROGRAM.matches(from).count(), 1, "{from}");
    PROGRAM.replace(from, to)
}

fn names(changed: &Changed) -> Vec<String> {
    changed.functions.iter().map(|function| function.name.clone()).collect()
}

/// The functions that changed.
#[track_caller]
fn changed(source: &str) -> Vec<String> {
    let (_folder, base, head) = both(source);
    names(&difference(&base, &head))
}

#[test]
fn comments_documentation_and_tests_are_the_same_program() {
    let said = replaced("//! A program.\n", "//! A program.\n//!\n//! It has a line more than it had.\n");
    let documented = replaced("fn looked_up", "/// Where a number is.\n/* and why */ fn looked_up");
    let tested =
        format!("{PROGRAM}\n#[cfg(test)]\nmod tests {{ #[test] fn new() {{ assert_eq!(super::scaled(1), 0); }} }}\n");
    let spaced = PROGRAM.replace(" {\n", " {\n\n\n");
    for source in [PROGRAM, &said, &documented, &tested, &spaced] {
        let (_folder, base, head) = both(source);
        assert_eq!(compare(&base, &head).expect("two programs"), Comparison::Same, "{source}");
    }
}

#[test]
fn what_a_program_does_or_holds_is_not_the_same() {
    for (from, to, function) in [
        ("number * 3 + 7", "number * 3 + 8", "scaled"),
        ("number * 3 + 7", "number * 3 - 7", "scaled"),
        ("17, 4, 23, 8, 15, 16", "17, 4, 23, 8, 15, 17", "looked_up"),
        ("\"the third\"", "\"the thirf\"", "named"),
        ("3 => wide(number),", "3 => wide(number + 1),", "chosen"),
        ("7 => scaled(number) ^ 1,", "7 => narrow(number) ^ 3,", "chosen"),
        ("self.0.len() as u64 + 5", "self.0.len() as u64 + 6", "go"),
        ("static START: AtomicU64 = AtomicU64::new(99)", "static START: AtomicU64 = AtomicU64::new(98)", "started"),
        ("const EACH: Cell<u64> = Cell::new(11)", "const EACH: Cell<u64> = Cell::new(12)", ""),
        ("vec![number; 4]", "vec![number; 4].clone()", ""),
        ("0.1f64", "0.1000001f64", "weighed"),
        ("(\"src/a.rs\", 3, 4)", "(\"src/b.rs\", 3, 4)", "main"),
        ("(\"src/a.rs\", 3, 4)", "(\"src/a.rs\", 3, 5)", "main"),
    ] {
        let found = changed(&replaced(from, to));
        assert!(found.iter().any(|name| name.contains(function)), "{from}: {found:?}");
        assert!(found.len() <= 6, "{from}: {found:?}");
    }
}

/// Whoever reads two names of many learns which code is other.
#[test]
fn functions_with_other_instructions_are_named_first() {
    let found = changed(&replaced("number * 3 + 7", "number * 3 + 8").replace("\"the third\"", "\"the thirf\""));
    let place = |function: &str| found.iter().position(|name| name.contains(function)).expect(function);
    assert!(place("scaled") < place("named"), "{found:?}");
}

#[test]
fn included_data_is_a_part_of_the_program() {
    let folder = Folder::new();
    let base = folder.build("base", PROGRAM, &[]);
    folder.write("head/data.txt", "some data that is IN the program");
    let head = folder.build("head", PROGRAM, &[]);
    let found = names(&difference(&base, &head));
    assert!(found.iter().any(|name| name.contains("included")), "{found:?}");
}

#[test]
fn other_flags_are_another_program() {
    let folder = Folder::new();
    let base = folder.build("base", PROGRAM, &[]);
    for flags in [
        &["-Copt-level=1"][..],
        &["-Ctarget-cpu=x86-64-v3"],
        &["--cfg=feature=\"fast\"", "--check-cfg=cfg(feature, values(any()))"],
        &["-Cdebug-assertions=yes"],
    ] {
        let head = folder.build("head", PROGRAM, flags);
        assert!(!difference(&base, &head).functions.is_empty(), "{flags:?}");
    }
}

/// Functions that move are not functions that change: what is counted is what the compiler made otherwise.
#[test]
fn what_only_moves_is_not_counted_among_the_changed() {
    let folder = Folder::new();
    let base = folder.build("base", PROGRAM, &[]);
    for seed in 1..=3 {
        let shuffled = format!("-Clink-arg=-Wl,--shuffle-sections=.text*={seed}");
        let head = folder.build("shuffled", PROGRAM, &[&shuffled]);
        let moved = difference(&base, &head);
        assert!(moved.functions.is_empty() && !moved.is_complete, "how it is linked is in no function: {moved:?}");
        let head = folder.build("shuffled", &replaced("number * 3 + 7", "number * 3 + 8"), &[&shuffled]);
        assert_eq!(names(&difference(&base, &head)), ["program::scaled"]);
    }
    let padding = "#[inline(never)] fn padding(number: u64) -> u64 { std::hint::black_box(number).rotate_left(9) }\n";
    let padded = format!("{PROGRAM}{padding}").replace("// unless", "if number == 1 << 60 { padding(number); }");
    let found = changed(&padded);
    assert!(["main", "padding"].iter().all(|name| found.contains(&format!("program::{name}"))), "{found:?}");
    assert!(found.len() < 5, "{found:?}");
}

/// Where the whole program is optimised at once, each build numbers the copies of the standard library's functions anew.
#[test]
fn copies_that_are_numbered_otherwise_are_not_counted_among_the_changed() {
    let padding = "#[used] static KEPT: fn(u64) -> u64 = padding;\n#[inline(never)] fn padding(by: u64) -> u64 { by.rotate_left(9) }\n";
    let folder = Folder::new();
    let base = folder.build("base", PROGRAM, &["-Clto=fat"]);
    let head = folder.build("head", &format!("{PROGRAM}{padding}"), &["-Clto=fat"]);
    let found = difference(&base, &head);
    assert_eq!((names(&found), found.is_complete), (vec!["program::padding".to_owned()], true));
}

/// What no function holds is not missed: what the loader loads.
#[test]
fn what_is_in_no_function_is_said_to_be_missing() {
    let changed = |base: &str, head: &str, flags: &[&str]| {
        let folder = Folder::new();
        difference(&folder.build("base", base, &[]), &folder.build("head", head, flags))
    };
    assert!(changed(PROGRAM, &replaced("as u64 * 9", "as u64 * 8"), &[]).is_complete);
    assert!(!changed(PROGRAM, PROGRAM, &["-Clink-arg=-Wl,--no-as-needed", "-Clink-arg=-lm"]).is_complete);
    let each = replaced("// unless", "CELL.with(|cell| cell.set(cell.get() * number));");
    let other = each.replace("const EACH: Cell<u64> = Cell::new(11)", "const EACH: Cell<u64> = Cell::new(12)");
    let of_threads = changed(&each, &other, &[]);
    assert!(of_threads.is_complete && names(&of_threads).contains(&"program::main".to_owned()), "{of_threads:?}");
}

/// A bit changed anywhere in what is linked makes another program, but for notes, what unwinding reads, and paths of panics.
#[test]
fn any_bit_counts() {
    let folder = Folder::new();
    let inputs = folder.build("base", PROGRAM, &[]).inputs().expect("object files");
    let own = inputs.words.iter().filter(|(word, _)| word.ends_with(".o")).flat_map(|(_, objects)| objects);
    let base = own.max_by_key(|object| object.len()).expect("its own");
    let is_other = |head: &[u8]| {
        let read = |object| Units::read(&[object], &mut |_, line| line);
        let Ok(head) = read(head) else { return true };
        let sides = match_units([read(base).expect("units"), head], [Addresses::new(), Addresses::new()]);
        let [mut was, mut is] = sides.map(|side| side.hashes);
        was.sort_unstable();
        is.sort_unstable();
        was != is
    };
    assert!(!is_other(base));
    let file = ElfFile64::<LittleEndian>::parse(&**base).expect("an object file");
    let mut random = fastrand::Rng::with_seed(7);
    for section in file.sections() {
        let (name, data) = (section.name().expect("a name"), section.data().expect("its bytes"));
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { panic!("{name}") };
        let is_loaded = sh_flags.0 & elf::SHF_ALLOC.0 != 0;
        // A location begins with its path.
        let first = if data.len() == 24 && name.starts_with(".data.rel.ro") { 16 } else { 0 };
        if data.is_empty()
            || !is_loaded
            || [".eh_frame", ".gcc_except_table", ".note"].iter().any(|of| name.starts_with(of))
        {
            continue;
        }
        let start = data.as_ptr().addr() - base.as_ptr().addr();
        for _ in 0..20 {
            let at = random.usize(first..data.len());
            let mut head = base.clone();
            head[start + at] ^= 1 << random.u8(..8);
            assert!(is_other(&head), "{name} at {at:#x}");
        }
    }
    for bytes in [0, 1, 63, 64, 200, 4096, base.len() - 1] {
        drop(Units::read(&[&base[..bytes]], &mut |_, line| line));
    }
}

/// Files that nobody linked here are compared by what is loaded of them.
#[test]
fn given_programs_are_compared_by_their_bytes() {
    let folder = Folder::new();
    let build = |name, source: &str| folder.build(name, source, &[]).built().expect("a program");
    let base = build("base", PROGRAM);
    assert!(loads_same_bytes(&base, &build("head", PROGRAM)));
    assert!(!loads_same_bytes(&base, &build("other", &replaced("number * 3 + 7", "number * 3 + 8"))));
    assert!(!loads_same_bytes(b"#!/bin/sh\n", b"#!/bin/sh\n"));
}
