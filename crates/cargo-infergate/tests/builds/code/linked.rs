//! What a linker is given in several object files, or in ways that hide some of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Changed, Comparison, Folder, PROGRAM, compare, difference, names, replaced};

/// Both programs, each with a library of its own, built in folders of different length.
#[track_caller]
fn changed(base: [&str; 2], head: [&str; 2]) -> Changed {
    let folder = Folder::new();
    let build = |name: &str, [library, program]: [&str; 2]| {
        let place = folder.write(&format!("{name}/lib.rs"), library);
        let place = place.parent().expect("a folder");
        let mut rustc = Command::new("rustc");
        rustc.current_dir(place).args([
            "--edition=2021",
            "--crate-type=rlib",
            "--crate-name=lib",
            "-Copt-level=3",
            "lib.rs",
        ]);
        assert!(rustc.status().expect("rustc").success());
        folder.build(name, program, &["--extern", "lib=liblib.rlib", "-Ccodegen-units=16"])
    };
    difference(&build("base", base), &build("a/longer/head", head))
}

const THREADS: &str = r#"
mod kept { use std::cell::Cell; thread_local! { pub static LIMIT: Cell<u64> = const { Cell::new(11) }; } }
mod work { #[inline(never)] pub fn sum() -> u64 { (0..super::kept::LIMIT.get()).map(|at| at.rotate_left(7)).sum() } }
mod more { #[inline(never)] pub fn product() -> u64 { (1..super::kept::LIMIT.get()).product() } }
fn main() { println!("{} {}", work::sum(), more::product()); }
"#;

#[test]
fn what_a_thread_begins_with_is_read_by_other_object_files() {
    let found = changed(["", THREADS], ["", &THREADS.replace("new(11)", "new(1100)")]);
    let found = names(&found);
    assert!(["sum", "product"].iter().all(|name| found.iter().any(|it| it.ends_with(name))), "{found:?}");
}

/// A variable that a library leaves to others, and has where nobody gives it.
const LEFT_OPEN: &str = r#"
std::arch::global_asm!(".weak kept_pages", ".data", "kept_pages: .long 1", ".text");
extern "C" { static kept_pages: u32; }
#[inline(never)] pub fn pages() -> u32 { unsafe { std::ptr::read_volatile(&raw const kept_pages) } }
"#;

#[test]
fn a_variable_that_another_object_file_gives_is_that_one() {
    let program = "#[no_mangle] pub static kept_pages: u32 = 4; fn main() { println!(\"{}\", lib::pages()); }";
    let found = changed([LEFT_OPEN, program], [LEFT_OPEN, &program.replace("= 4", "= 5")]);
    assert!(names(&found).iter().any(|name| name.ends_with("pages")), "{found:?}");
}

/// An inlined function of which each object file has a copy.
const COPIED: &str = r#"
#[inline] pub fn big(v: &[u64]) -> u64 {
    let mut sum = 1;
    for x in v { if x % 17 == 3 { sum += format!("{sum}").len() as u64; } if x % 19 == 3 { sum += format!("{sum:?} {x}").len() as u64; } }
    sum
}
pub mod one { #[inline(never)] pub fn first(v: &[u64]) -> u64 { super::big(v) + super::big(&v[1..]) } }
pub mod two { #[inline(never)] pub fn second(v: &[u64]) -> u64 { super::big(v) ^ super::big(&v[2..]) } }
pub mod three { #[inline(never)] pub fn third(v: &[u64]) -> u64 { super::big(&v[1..]) * super::big(&v[3..]) } }
"#;
const COPIES_USED: &str = r#"
fn main() {
    let v: Vec<u64> = std::env::args().map(|text| text.len() as u64).collect();
    println!("{}", lib::one::first(&v) + lib::two::second(&v));
}
"#;

#[test]
fn one_more_copy_of_a_function_is_no_change_of_it() {
    let more = COPIES_USED.replace("+ lib::two", "+ lib::three::third(&v) + lib::two");
    let found = changed([COPIED, COPIES_USED], [COPIED, &more]);
    let all = names(&found);
    assert!(found.is_complete && !all.iter().any(|name| name.ends_with("big")), "{found:?}");
    let found = changed([COPIED, COPIES_USED], [&COPIED.replace("% 17", "% 13"), COPIES_USED]);
    assert!(found.is_complete && names(&found).contains(&"lib::big".to_owned()), "{found:?}");
}

/// Functions of one section that call each other without the linker, as assemblers make them.
const ASSEMBLED: &str = r#"
std::arch::global_asm!(
    ".globl first, second", ".type first,@function", ".type second,@function",
    "first: call local", "ret", "local: mov eax, 1", "ret", "second: mov eax, 2", "ret",
);
extern "C" { fn first() -> i32; fn second() -> i32; }
fn main() { println!("{}", unsafe { first() + second() }); }
"#;

#[test]
fn functions_of_one_section_change_together() {
    for (from, to) in [("mov eax, 1", "mov eax, 7"), ("mov eax, 2", "mov eax, 7")] {
        let found = changed(["", ASSEMBLED], ["", &ASSEMBLED.replace(from, to)]);
        let all = names(&found);
        assert!(["first", "second"].iter().all(|name| all.contains(&(*name).to_owned())), "{from}: {found:?}");
        assert!(!found.is_complete, "a label is no function that can be watched");
    }
}

#[test]
fn another_folder_of_a_source_is_no_change() {
    let source = "fn main() { println!(\"{}\", std::env::args().collect::<Vec<_>>()[1]); }";
    let folder = Folder::new();
    let base = folder.build("base", source, &[]);
    let head = folder.build("head", source, &["--remap-path-prefix=program.rs=/builds/out/program.rs"]);
    assert_eq!(compare(&base, &head).expect("two programs"), Comparison::Same);
}

#[test]
fn another_way_to_link_is_another_program() {
    for flags in [&["-Clink-arg=-Wl,-z,nognustack,-Map=/dev/null"][..], &["-Cllvm-args=-align-all-functions=8"]] {
        let folder = Folder::new();
        let (base, head) = (folder.build("base", PROGRAM, &[]), folder.build("head", PROGRAM, flags));
        assert_ne!(compare(&base, &head).expect("two programs"), Comparison::Same, "{flags:?}");
    }
}

#[test]
fn what_cannot_be_read_is_not_called_the_same() {
    for flags in [["-Clink-arg=-s"], ["-Clink-arg=-Wl,-x"], ["-Clinker-plugin-lto"]] {
        let folder = Folder::new();
        let (base, head) = (folder.build("base", PROGRAM, &flags), folder.build("head", PROGRAM, &flags));
        assert!(compare(&base, &head).is_err(), "{flags:?}");
    }
    let folder = Folder::new();
    let build = |name: &str, source: &str| folder.build(name, source, &[]);
    let (base, head) = (build("base", PROGRAM), build("head", &replaced("number * 3 + 7", "number * 3 + 8")));
    for name in ["base", "head"] {
        let own = fs::read_dir(Path::new(folder.0.path()).join(name)).expect("a folder");
        let is_object = |path: &std::path::PathBuf| path.to_string_lossy().ends_with("cgu.0.rcgu.o");
        let own = own.map(|entry| entry.expect("an entry").path()).find(is_object).expect("its object file");
        fs::remove_file(own).expect("removed");
    }
    assert!(compare(&base, &head).is_err());
}
