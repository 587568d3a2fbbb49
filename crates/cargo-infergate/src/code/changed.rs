//! Which functions differ between two executables, wherever they lie.
//!
//! A function of one is compared with that of the same name in the other: its instructions, and in place of each address what is
//! there. The compiler adds hashes of crates and types to names; where a name with its hash is in both, that is the same function,
//! and else all of the same name without it are compared together. What is not understood has changed. Where a constant ends is not
//! written down: it ends where another begins that somebody refers to, so one that moved beside others can count as changed.
//!
//! Where a case is watched for the functions that changed, see [`crate::watch`], none may be missing. So functions are watched, too,
//! that read a constant beside one that differs: theirs may reach further than it looks. And [`Changed::is_all`] is false where
//! something differs that is in no function.

use std::collections::{HashMap, HashSet};

use object::elf;

use super::content::{Contents, Piece, readable};
use super::functions::{self, Function};
use super::image::Image;

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Functions that are in one alone or have other instructions or constants, by name.
    pub functions: Vec<ChangedFunction>,
    /// Functions that read a constant beside one that differs, and are the same as far as is known.
    pub beside: Vec<ChangedFunction>,
    /// Whether nothing else differs that could change what a program does.
    pub is_all: bool,
}

/// A function that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFunction {
    /// Its name, without hashes.
    pub name: String,
    /// Where it begins in base, when that is loaded at zero; `None` where base has none.
    pub base: Option<u64>,
    /// The same in head.
    pub head: Option<u64>,
}

/// Compares all functions of two executables.
pub fn between(base: &Image, head: &Image) -> Changed {
    let (was, is) = (functions::all(base), functions::all(head));
    let in_base: HashSet<&[u8]> = was.iter().flat_map(|function| function.names.iter().copied()).collect();
    let in_head: HashSet<&[u8]> = is.iter().flat_map(|function| function.names.iter().copied()).collect();
    let shared: HashSet<&[u8]> = in_base.intersection(&in_head).copied().collect();
    let (base_keys, head_keys) = (keys(&was, &shared), keys(&is, &shared));
    let mut ambiguous = several(&base_keys);
    ambiguous.extend(several(&head_keys));
    let mut base_contents = Contents::new(base, &was, &base_keys, &ambiguous);
    let mut head_contents = Contents::new(head, &is, &head_keys, &ambiguous);
    let (base_prints, head_prints) =
        (fingerprints(&mut base_contents, &was, &base_keys), fingerprints(&mut head_contents, &is, &head_keys));
    let mut all: Vec<&String> = base_prints.keys().chain(head_prints.keys()).copied().collect();
    all.sort();
    all.dedup();
    let none = Vec::new();
    let mut changed = Vec::new();
    for key in all {
        let of = |prints: &HashMap<&String, Vec<Print>>| prints.get(key).unwrap_or(&none).clone();
        let (base, head) = unmatched(of(&base_prints), of(&head_prints));
        for at in 0..base.len().max(head.len()) {
            let (base, head) = (base.get(at).copied(), head.get(at).copied());
            changed.push(ChangedFunction { name: readable(key.as_bytes()), base, head });
        }
    }
    let (base_pieces, head_pieces) = (base_contents.pieces(), head_contents.pieces());
    let in_base = beside(&base_pieces, &head_pieces, &was)
        .map(|(name, at)| ChangedFunction { name, base: Some(at), head: None });
    let in_head = beside(&head_pieces, &base_pieces, &is)
        .map(|(name, at)| ChangedFunction { name, base: None, head: Some(at) });
    let beside = in_base.chain(in_head).collect();
    // A part that is split off a function is jumped to, and not always at its beginning.
    let has_parts = changed.iter().any(|function| function.name.contains(".cold"));
    let is_all = !has_parts
        && base.libraries == head.libraries
        && of_threads(base) == of_threads(head)
        && functions::outside(base, &was) == functions::outside(head, &is);
    Changed { functions: changed, beside, is_all }
}

/// What each thread begins with.
fn of_threads<'data>(image: &Image<'data>) -> Vec<(&'data [u8], u64)> {
    let of_threads = image.sections.iter().filter(|section| section.flags.1 & elf::SHF_TLS.0 != 0);
    of_threads.map(|section| (section.bytes, section.size)).collect()
}

/// The functions that refer to a piece that only `pieces` has, or to the one before or behind it.
fn beside<'a>(
    pieces: &[Piece],
    others: &[Piece],
    functions: &'a [Function],
) -> impl Iterator<Item = (String, u64)> + use<'a> {
    let mut left: HashMap<u64, usize> = HashMap::new();
    for piece in others {
        *left.entry(piece.hash).or_default() += 1;
    }
    let mut ranges = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match left.get_mut(&piece.hash).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            // Where an object of a name ends is written down.
            None if piece.is_named => {}
            None => {
                let before = at.checked_sub(1).map_or(piece.start, |before| pieces[before].start);
                ranges.push(before..pieces.get(at + 1).map_or(piece.end, |behind| behind.end));
            }
        }
    }
    let is_in = move |address: u64| {
        let behind = ranges.partition_point(|range: &std::ops::Range<u64>| range.start <= address);
        ranges[..behind].iter().rev().take(3).any(|range| range.contains(&address))
    };
    let reads = move |function: &&Function| function.references.iter().any(|reference| is_in(reference.address));
    let named = |function: &Function| {
        (readable(function.names.first().copied().unwrap_or_default()), function.address)
    };
    functions.iter().filter(reads).map(named)
}

/// How each is called in both: by a name with its hash where both have that, else without.
fn keys(functions: &[Function], shared: &HashSet<&[u8]>) -> Vec<String> {
    let key = |function: &Function| {
        let known = function.names.iter().find(|name| shared.contains(*name));
        known.map_or_else(
            || readable(function.names.first().copied().unwrap_or_default()),
            |name| String::from_utf8_lossy(name).into_owned(),
        )
    };
    functions.iter().map(key).collect()
}

fn several(keys: &[String]) -> HashSet<String> {
    let mut seen = HashSet::new();
    keys.iter().filter(|key| !seen.insert(*key)).cloned().collect()
}

/// Where a function begins, and its fingerprint; `None` for one that is not understood, which equals nothing.
type Print = (u64, Option<u64>);

/// Those of the functions of each key.
fn fingerprints<'a>(
    contents: &mut Contents,
    functions: &[Function],
    keys: &'a [String],
) -> HashMap<&'a String, Vec<Print>> {
    let mut found: HashMap<&String, Vec<Print>> = HashMap::new();
    for (function, key) in functions.iter().zip(keys) {
        found.entry(key).or_default().push((function.address, contents.fingerprint(function)));
    }
    found
}

/// Where those of each list begin that are not in the other, each used once.
fn unmatched(was: Vec<Print>, mut is: Vec<Print>) -> (Vec<u64>, Vec<u64>) {
    let mut gone = Vec::new();
    for (address, print) in was {
        let same = print.and_then(|_| is.iter().position(|(_, other)| *other == print));
        match same {
            Some(at) => drop(is.swap_remove(at)),
            None => gone.push(address),
        }
    }
    (gone, is.into_iter().map(|(address, _)| address).collect())
}
