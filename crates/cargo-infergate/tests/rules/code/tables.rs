//! Tables in a program: an entry that leads elsewhere is a change, wherever it leads.

use std::ops::Range;

use infergate_build::code::image::{Image, Section};

use super::coverage::seen_of;
use super::{Comparison, Folder, PROGRAM, compare, names};

/// A jump table: its section, where in it, and entries that lead into its function.
struct Table<'a> {
    section: &'a Section<'a>,
    at: usize,
    entries: usize,
}

impl Table<'_> {
    /// What `number` leads to as an entry.
    fn target(&self, number: i32) -> u64 {
        (self.section.address + self.at as u64).wrapping_add_signed(number.into())
    }

    fn number(&self, entry: usize) -> i32 {
        let at = self.at + 4 * entry;
        i32::from_le_bytes(self.section.bytes[at..at + 4].try_into().expect("four bytes"))
    }
}

/// The one that leads into `function` most often.
fn jump_table<'a>(image: &'a Image<'a>, function: &Range<u64>) -> Table<'a> {
    let section = image.sections.iter().find(|section| section.name == b".rodata").expect("constants");
    let tables = (0..section.bytes.len() - 3).step_by(4).map(|at| {
        let left = (section.bytes.len() - at) / 4;
        let table = Table { section, at, entries: left };
        let entries = (0..left).take_while(|entry| function.contains(&table.target(table.number(*entry)))).count();
        Table { entries, ..table }
    });
    tables.reduce(|most, table| if table.entries > most.entries { table } else { most }).expect("a table")
}

#[test]
fn a_jump_that_leads_out_of_its_function_is_a_change_of_it() {
    let folder = Folder::new();
    let base = folder.build("base", PROGRAM, &[]);
    let image = Image::parse(&base).expect("an executable");
    let is_it = |name: &[u8]| String::from_utf8_lossy(name).contains("7program6chosen");
    let chosen = image.symbols.iter().find(|symbol| is_it(symbol.name)).expect("the function");
    let function = chosen.address..chosen.address + chosen.size;
    let table = jump_table(&image, &function);
    assert!(table.entries >= 8, "one for each arm, and not {}", table.entries);
    let file_offset = table.section.bytes.as_ptr().addr() - base.as_ptr().addr() + table.at;
    let leaves = |entry: usize, bit: usize| !function.contains(&table.target(table.number(entry) ^ (1 << bit)));
    let lowest = |entry| (0..32).find(|bit| leaves(entry, *bit)).expect("a bit");
    let flips = (0..8).map(|entry| (entry, lowest(entry))).chain([(3, 30), (7, 31), (5, 0)]);
    for (entry, bit) in flips {
        let mut head = base.clone();
        head[file_offset + 4 * entry + bit / 8] ^= 1 << (bit % 8);
        let Comparison::Differ(Some(found)) = compare(&base, &head).expect("two executables") else {
            panic!("entry {entry}, bit {bit}: the same")
        };
        assert_eq!(names(&found), ["program::chosen"], "entry {entry}, bit {bit}");
    }
}

/// One function takes the address of a table of distances to texts, another one reads it.
const APART: &str = r#"
use std::arch::global_asm;

global_asm!(
    ".section .rodata.table,\"a\",@progbits",
    ".balign 4",
    ".Ltable: .long .Lfirst - .Ltable",
    ".long .Lsecond - .Ltable",
    ".balign 64",
    ".Lfirst: .ascii \"a text\"",
    ".Lsecond: .ascii \"b text\"",
    ".section .text.taker,\"ax\",@progbits",
    ".globl taker",
    ".type taker,@function",
    "taker: lea rax, [rip + .Ltable]",
    "ret",
    ".size taker, . - taker",
    ".section .text.reader,\"ax\",@progbits",
    ".globl reader",
    ".type reader,@function",
    "reader: movsxd rax, dword ptr [rdi + 4*rsi]",
    "add rax, rdi",
    "ret",
    ".size reader, . - reader",
);

extern "C" {
    fn taker() -> *const i32;
    fn reader(table: *const i32, at: usize) -> *const u8;
}

fn main() {
    let at = std::env::args().count() % 2;
    println!("{}", unsafe { *reader(taker(), at) } as char);
}
"#;

#[test]
fn a_table_that_another_function_reads_is_a_change_of_the_one_that_takes_its_address() {
    for (from, to) in [
        // The text that is read is another one, or both change places, or they only lie elsewhere.
        ("b text", "c text"),
        (".long .Lsecond - .Ltable", ".long .Lfirst - .Ltable"),
        (".balign 64", ".balign 256"),
    ] {
        assert_eq!(APART.matches(from).count(), 1, "{from}");
        let seen = seen_of(APART, &APART.replace(from, to), &[]);
        assert_eq!(seen.ran, ["taker"], "{from}");
    }
}
