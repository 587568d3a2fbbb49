//! A program.

use std::cell::Cell;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

static START: AtomicU64 = AtomicU64::new(99);
static PLACES: [(&str, u32, u32); 2] = [("src/a.rs", 3, 4), ("src/c.rs", 5, 6)];
static DATA: &str = include_str!("data.txt");
const NUMBERS: [u32; 6] = [17, 4, 23, 8, 15, 16];

thread_local! {
    static CELL: Cell<u64> = const { EACH };
}
const EACH: Cell<u64> = Cell::new(11);

#[inline(never)]
fn scaled(number: u64) -> u64 {
    if cfg!(feature = "fast") { number } else { number * 3 + 7 }
}

#[inline(never)]
fn looked_up(at: usize) -> u32 {
    NUMBERS[at % 7]
}

#[inline(never)]
fn named(number: u64) -> &'static str {
    match number {
        0 => "the first",
        1 => "the second of all",
        2 => "the third",
        3 => "and more",
        _ => panic!("no name for {number}"),
    }
}

#[inline(never)]
fn wide(number: u64) -> u64 {
    number.leading_zeros() as u64 * 5
}

#[inline(never)]
fn narrow(number: u64) -> u64 {
    number.trailing_zeros() as u64 * 9
}

#[inline(never)]
fn chosen(kind: u64, number: u64) -> u64 {
    match kind {
        0 => scaled(number),
        1 => scaled(number) + wide(number),
        2 => number.pow(3),
        3 => wide(number),
        4 => narrow(number) * number,
        5 => number / (number + 1),
        6 => looked_up(number as usize) as u64,
        7 => scaled(number) ^ 1,
        _ => 0,
    }
}

trait Going {
    fn go(&self) -> u64;
}

struct Short(u64);
struct Long(String);

impl Going for Short {
    fn go(&self) -> u64 {
        self.0 * 3
    }
}

impl Going for Long {
    fn go(&self) -> u64 {
        self.0.len() as u64 + 5
    }
}

#[inline(never)]
fn made(number: u64) -> Box<dyn Going> {
    if number > 1 { Box::new(Short(number)) } else { Box::new(Long(format!("{number} of them"))) }
}

#[inline(never)]
fn started() -> u64 {
    START.fetch_add(1, Ordering::Relaxed)
}

#[inline(never)]
fn weighed(number: f64) -> f64 {
    number * 0.1f64
}

#[inline(never)]
fn included(at: usize) -> u8 {
    DATA.as_bytes()[at]
}

#[inline(never)]
fn counted(number: u64) -> u64 {
    let several: HashMap<u64, u64> = vec![number; 4].into_iter().map(|one| (one, one)).collect();
    several.len() as u64
}

fn main() {
    let number = black_box(std::env::args().count() as u64);
    // unless
    let place = PLACES[number as usize % 2];
    println!("{} {} {}", scaled(number), looked_up(number as usize), named(number));
    println!("{} {} {}", chosen(number, number), made(number).go(), started());
    println!("{} {} {}", weighed(number as f64), included(number as usize), counted(number));
    println!("{} {} {} {}", place.0, place.1, place.2, CELL.with(Cell::get));
}
