//! Changes that a function meets without an address of its own that leads to them: another instance, a list's further parts, the
//! front of a table whose middle somebody else takes.

use super::{Changed, Folder, difference, names};

#[track_caller]
fn changed(base: (&str, &[&str]), head: (&str, &[&str])) -> Changed {
    let folder = Folder::new();
    difference(&folder.build("base", base.0, base.1), &folder.build("head", head.0, head.1))
}

/// `source` with `from`, and with `to` in its place.
#[track_caller]
fn replaced(source: &str, from: &str, to: &str) -> Changed {
    assert_eq!(source.matches(from).count(), 1, "{from}");
    changed((source, &[]), (&source.replace(from, to), &[]))
}

#[track_caller]
fn assert_named(changed: &Changed, function: &str) {
    let found = names(changed);
    assert!(found.iter().any(|name| name.ends_with(function)), "{function}: {found:?}");
}

/// Two instances of the same instructions: they call other functions, or read other tables.
const INSTANCES: &str = r#"
use std::hint::black_box;
trait Kernel { const ROWS: &'static [u64]; fn sum(x: &[u64]) -> u64; }
struct Wide;
struct Scalar;
impl Kernel for Wide {
    const ROWS: &'static [u64] = &[1, 2, 3, 4];
    #[inline(never)] fn sum(x: &[u64]) -> u64 { x.iter().fold(0, |a, b| a.wrapping_add(*b)) }
}
impl Kernel for Scalar {
    const ROWS: &'static [u64] = &[9, 8, 7, 6];
    #[inline(never)] fn sum(x: &[u64]) -> u64 { let mut s = 0u64; for b in x { s = black_box(s).wrapping_add(*b); } s }
}
#[inline(never)] fn process<K: Kernel>(x: &mut [u64]) -> u64 { x[0] = 3; let s = K::sum(x); x[1] = s; s ^ 5 }
#[inline(never)] fn row<K: Kernel>(at: usize) -> u64 { black_box(K::ROWS)[at % 4] }
#[inline(never)] fn hot(x: &mut [u64]) -> u64 { process::<Wide>(x) }
#[inline(never)] fn warm(at: usize) -> u64 { row::<Wide>(at) ^ 1 }
fn main() {
    let n = black_box(std::env::args().count());
    let mut x = vec![1u64; 64];
    println!("{} {}", hot(black_box(&mut x)), warm(n));
    println!("{} {} {}", process::<Scalar>(&mut x), row::<Scalar>(n), row::<Wide>(n) ^ process::<Wide>(&mut x));
}
"#;

#[test]
fn a_call_of_another_instance_is_a_change_where_the_crate_has_another_version() {
    let (old, new) = (&["-Cmetadata=1"][..], &["-Cmetadata=2"][..]);
    let same = changed((INSTANCES, old), (&INSTANCES.replace("row::<Wide>(at) ^ 1", "row::<Wide>(at) ^ 2"), new));
    assert_eq!((names(&same), same.is_complete), (vec!["program::warm".to_owned()], true));
    for (from, to, function) in
        [("process::<Wide>(x)", "process::<Scalar>(x)", "hot"), ("row::<Wide>(at)", "row::<Scalar>(at)", "warm")]
    {
        let found = changed((INSTANCES, old), (&INSTANCES.replace(from, to), new));
        assert_eq!(names(&found), [format!("program::{function}")]);
    }
}

/// A list that the linker puts together, as linkme's.
const LIST: &str = r#"
use std::hint::black_box;
struct Rule { name: &'static str, cost: fn(u64) -> u64 }
#[inline(never)] fn cheap(n: u64) -> u64 { n + 1 }
#[inline(never)] fn dear(n: u64) -> u64 { (0..n * 1000).fold(0, |a, b| black_box(a ^ b)) & 1 }
#[used] #[link_section = "rules"] static A: Rule = Rule { name: "first", cost: cheap };
#[used] #[link_section = "rules"] static B: Rule = Rule { name: "second", cost: cheap };
#[used] #[link_section = ".init_array.00001"] static BEGIN: extern "C" fn() = begin;
extern "C" fn begin() { black_box(1); }
extern "C" fn begin_otherwise() { black_box(2); }
extern "C" {
    #[link_name = "__start_rules"] static START: Rule;
    #[link_name = "__stop_rules"] static STOP: Rule;
}
#[inline(never)] fn apply(text: &str) -> u64 {
    let (from, to) = (&raw const START, &raw const STOP);
    let rules = unsafe { std::slice::from_raw_parts(from, to.offset_from(from) as usize) };
    rules.iter().map(|rule| (rule.cost)(3) + (rule.name.len() == text.len()) as u64).sum()
}
fn main() {
    let n = black_box(std::env::args().count() as u64);
    if n > 5 { println!("{}", dear(n)); }
    let both: [extern "C" fn(); 2] = black_box([begin, begin_otherwise]);
    both[n as usize % 2]();
    println!("{}", apply(black_box("xyz")));
}
"#;

#[test]
fn each_part_of_a_list_is_read_by_whoever_reads_the_list() {
    let found = replaced(LIST, "\"second\", cost: cheap", "\"second\", cost: dear");
    assert_named(&found, "apply");
    assert!(found.is_complete, "{found:?}");
}

#[test]
fn data_that_no_function_that_changed_leads_to_is_said_to_be_missing() {
    let found = replaced(LIST, "= begin;", "= begin_otherwise;");
    assert!(!found.is_complete, "{found:?}");
}

/// A table that functions take from its beginning, its middle and its end.
const TABLE: &str = r#"
use std::hint::black_box;
KIND ROWS: [u32; 100] = { let mut t = [0; 100]; let mut i = 0; while i < 100 { t[i] = 1000 + (i * i) as u32; i += 1; } t[50] = 7; t };
#[inline(never)] fn chunk(at: usize) -> u32 { ROWS[at % 100] }
#[inline(never)] fn last_below(size: u32) -> bool { ROWS.iter().rposition(|row| *row <= size).is_some() }
#[inline(never)] fn above_first(size: u32) -> usize { ROWS[1..].iter().filter(|row| black_box(**row) >= size).count() }
#[inline(never)] fn tail(to: &mut dyn FnMut(u32)) { for row in &ROWS[10..] { to(*row) } }
#[inline(never)] fn part(n: usize) -> &'static [u32] { if n > 3 { &ROWS[16..32] } else { &ROWS[64..] } }
fn main() {
    let n = black_box(std::env::args().count());
    println!("{}", CALL);
    if n > 5 { println!("{}", above_first(n as u32)); tail(&mut |row| println!("{row}")); println!("{:?}", PART); }
}
"#;

#[test]
fn a_table_is_read_by_whoever_takes_its_beginning_or_its_end() {
    for kind in ["const", "static"] {
        for (call, function) in [("chunk(n)", "chunk"), ("last_below(n as u32)", "last_below")] {
            let source = TABLE.replace("KIND", kind).replace("CALL", call).replace("PART", "part(n)");
            assert_named(&replaced(&source, "t[50] = 7", "t[50] = 8"), function);
        }
    }
}

#[test]
fn a_table_whose_middle_is_taken_anew_is_compared_behind_it() {
    let base = TABLE.replace("KIND", "const").replace("CALL", "chunk(n)");
    let head = base.replace("PART", "part(n)").replace("t[50] = 7", "t[50] = 8");
    assert_named(&changed((&base.replace("PART", "n"), &[]), (&head, &[])), "chunk");
}

/// A constant that looks like the location of a panic, in a source that has such lines.
const PLACE: &str = r#"
use std::hint::black_box;
#[inline(never)] fn work() -> u32 {
    let (_, rows, columns): &(&str, u32, u32) = black_box(&("program.rs", 4, 20));
    (0..rows * columns).fold(0, |a, b| black_box(a ^ b))
}
fn main() { println!("{}", work()); }
"#;

#[test]
fn what_looks_like_a_location_may_not_change_its_numbers() {
    for other in ["5, 20", "4, 21", "700, 20"] {
        assert_named(&replaced(PLACE, "4, 20", other), "work");
    }
}

/// The row of a table that looks like the location of a panic.
const ROW: &str = r#"
use std::hint::black_box;
const KINDS: &[(&str, u32, u32)] = &[("x.c", 2, 300), ("x.rs", 4, 200), ("x.py", 1, 100)];
#[inline(never)] fn work(kind: &str) -> u32 {
    let kind = KINDS.iter().find(|row| row.0 == kind).unwrap_or(&KINDS[0]);
    (0..kind.1 * kind.2).fold(0, |a, b| black_box(a ^ b))
}
fn main() {
    let kind = std::env::args().next().unwrap_or_default();
    println!("{}", work(black_box(&kind)));
}
"#;

#[test]
fn a_row_of_a_table_is_no_location() {
    assert_named(&replaced(ROW, "200", "2000"), "work");
}

/// A table of tables, whose addresses the loader writes.
const PACKED: &str = r#"
use std::hint::black_box;
static TABLES: [&[u32]; 2] = [&[1, 2, 3], &[4, 5, 6]];
#[inline(never)] fn hot(n: usize) -> u32 { TABLES[n % 2].iter().fold(0, |a, b| black_box(a ^ b)) }
fn main() { println!("{}", hot(black_box(std::env::args().count()))); }
"#;

#[test]
fn addresses_that_are_packed_are_followed() {
    let packed: &[&str] = &["-Clink-arg=-Wl,-z,pack-relative-relocs"];
    let found = changed((PACKED, packed), (&PACKED.replace("4, 5", "4, 500"), packed));
    assert_named(&found, "hot");
}
