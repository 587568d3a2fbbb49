//! Damaged inputs with fixed seeds, and the memory that a parser takes for one: what the tests called `hostile` of several packages
//! share.
#![allow(dead_code, reason = "each package uses some of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering};

/// No parser takes more than so many times its input,
const TIMES: u64 = 8;
/// and so much beside it.
const BESIDE_BYTES: u64 = 16 << 20;

/// Counts what the thread that asks has live, and all threads together, and the most there was.
pub struct Counting;

static ALL_LIVE: AtomicI64 = AtomicI64::new(0);
static ALL_MOST: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    ALL_MOST.fetch_max(ALL_LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
    // A thread that ends may free what it has after its counters are gone.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(live.get())));
    });
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// What `work` gives, and the most memory that it had at once, bytes.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = LIVE.get();
    MOST.set(before);
    let done = work();
    (done, u64::try_from(MOST.get() - before).unwrap_or(0))
}

/// What `parse` gives of an input of `bytes`.
///
/// # Panics
/// Where it took more memory than it may.
#[track_caller]
pub fn within_memory<T>(name: &str, bytes: usize, parse: impl FnOnce() -> T) -> T {
    let (parsed, most) = peak(parse);
    let allowed = TIMES * bytes as u64 + BESIDE_BYTES;
    assert!(most <= allowed, "{name}: an input of {bytes} bytes took {most} bytes of memory, {allowed} are allowed");
    parsed
}

/// As [`within_memory`], of all threads: nothing else may run meanwhile that takes much.
#[track_caller]
pub fn within_memory_of_all<T>(name: &str, bytes: usize, work: impl FnOnce() -> T) -> T {
    let before = ALL_LIVE.load(Ordering::Relaxed);
    ALL_MOST.store(before, Ordering::Relaxed);
    let done = work();
    let most = u64::try_from(ALL_MOST.load(Ordering::Relaxed) - before).unwrap_or(0);
    let allowed = TIMES * bytes as u64 + BESIDE_BYTES;
    assert!(most <= allowed, "{name}: an input of {bytes} bytes took {most} bytes of memory, {allowed} are allowed");
    done
}

/// How many inputs of each kind: 2,000, or as many as the variable says.
pub fn inputs() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

/// Damages `sound` inputs again and again and gives each to `parse`, which may refuse it, but neither panic nor fill the memory.
/// Gives how many were taken for sound.
#[track_caller]
pub fn survives<E: std::fmt::Display>(name: &str, sound: &[&[u8]], parse: impl Fn(&[u8]) -> Result<(), E>) -> u32 {
    for input in sound {
        if let Err(error) = parse(input) {
            panic!("{name}: the sound input itself is refused: {error}");
        }
    }
    let mut taken = 0;
    for seed in 0..inputs() {
        let mut random = Random(u64::from(seed));
        let input = damaged(sound, &mut random);
        let ended = catch_unwind(AssertUnwindSafe(|| within_memory(name, input.len(), || parse(&input))));
        match ended {
            Ok(Ok(())) => taken += 1,
            Ok(Err(error)) => {
                let line = error.to_string();
                assert!(!line.is_empty() && !line.ends_with('.'), "{name}, seed {seed}: {line:?}");
            }
            Err(_) => panic!("{name}: the input of seed {seed} made it panic; its words are above"),
        }
    }
    taken
}

/// SplitMix64: the same numbers everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `most`, which is not zero.
    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

const WORDS: [&[u8]; 16] = [
    b"18446744073709551616",
    b"-9223372036854775809",
    b"1e999",
    b"-1",
    b"0",
    b"null",
    b"true",
    b"\"\"",
    b"[]",
    b"{}",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\"\\ud800\"",
    b"\x1b[2J",
    b"\r\n\r\n",
];

/// One of the `sound` inputs after one to four changes.
pub fn damaged(sound: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut bytes = sound[random.below(sound.len())].to_vec();
    for _ in 0..=random.below(4) {
        change(&mut bytes, sound, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, sound: &[&[u8]], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let to = (at + random.below(64)).min(bytes.len());
    match random.below(11) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..to)),
        // A piece of this input or of another one.
        5 => {
            let other = sound[random.below(sound.len())];
            let from = random.below(other.len() + 1);
            let piece = other[from..(from + random.below(256)).min(other.len())].to_vec();
            drop(bytes.splice(at..to, piece));
        }
        6 => {
            let piece = bytes[at..to].repeat(2 + random.below(50));
            drop(bytes.splice(at..to, piece));
        }
        7 => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied())),
        // A number, or a word, in place of a number.
        8 => {
            let is_digit = |byte: &u8| byte.is_ascii_digit();
            if let Some(from) = bytes[at..].iter().position(is_digit).map(|digits| at + digits) {
                let end = bytes[from..].iter().position(|byte| !is_digit(byte)).map_or(bytes.len(), |end| from + end);
                drop(bytes.splice(from..end, WORDS[random.below(WORDS.len())].iter().copied()));
            }
        }
        9 => {
            let deep =
                [&b"["[..], b"{\"a\":", b"{\"\":[", b"((", b"[["][random.below(5)].repeat(1 + random.below(3_000));
            drop(bytes.splice(at..at, deep));
        }
        // Eight bytes that a length may lie in.
        _ => {
            let number = [u64::MAX, 1 << 63, 1 << 40, u64::from(u32::MAX), 1 << 31, 0][random.below(6)];
            for (byte, new) in bytes[at..].iter_mut().zip(number.to_le_bytes()) {
                *byte = new;
            }
        }
    }
}
