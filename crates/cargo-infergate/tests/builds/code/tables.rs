//! A table of distances, which names nothing that it leads to.

use super::coverage::seen_of;

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
