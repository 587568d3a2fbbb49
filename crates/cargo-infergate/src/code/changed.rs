//! Which functions differ between two executables, wherever they lie.
//!
//! A function of one is compared with that of the same name in the other: its instructions, and in place of each address what is
//! there. The compiler adds hashes of crates and types to names; where a name with its hash is in both, that is the same function,
//! and else all of the same name without it are compared together. What is not understood has changed. Where a constant ends is not
//! written down: it ends where another begins that somebody refers to, so one that moved beside others can count as changed. The number
//! is an upper bound, and decides nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::content::{Contents, readable};
use super::functions::{self, Function};
use super::image::Image;

/// The names of the functions that are in one alone or differ, a function of both once.
pub fn between(base: &Image, head: &Image) -> Vec<String> {
    let (was, is) = (functions::all(base), functions::all(head));
    let in_base: HashSet<&[u8]> = was.iter().flat_map(|function| function.names.iter().copied()).collect();
    let in_head: HashSet<&[u8]> = is.iter().flat_map(|function| function.names.iter().copied()).collect();
    let shared: HashSet<&[u8]> = in_base.intersection(&in_head).copied().collect();
    let (base_keys, head_keys) = (keys(&was, &shared), keys(&is, &shared));
    let mut ambiguous = several(&base_keys);
    ambiguous.extend(several(&head_keys));
    let was = fingerprints(base, &was, &base_keys, &ambiguous);
    let is = fingerprints(head, &is, &head_keys, &ambiguous);
    let all: BTreeMap<&String, ()> = was.keys().chain(is.keys()).map(|key| (*key, ())).collect();
    let none = Vec::new();
    let mut changed = Vec::new();
    for key in all.into_keys() {
        let (was, is) = (was.get(key).unwrap_or(&none), is.get(key).unwrap_or(&none));
        let same = matching(was, is);
        let name = readable(key.as_bytes());
        changed.extend(std::iter::repeat_n(name, was.len().max(is.len()) - same));
    }
    changed
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

/// The fingerprints of the functions of each key; `None` for one that is not understood, which equals nothing.
fn fingerprints<'a>(
    image: &Image,
    functions: &[Function],
    keys: &'a [String],
    ambiguous: &HashSet<String>,
) -> HashMap<&'a String, Vec<Option<u64>>> {
    let mut contents = Contents::new(image, functions, keys, ambiguous);
    let mut found: HashMap<&String, Vec<Option<u64>>> = HashMap::new();
    for (function, key) in functions.iter().zip(keys) {
        found.entry(key).or_default().push(contents.fingerprint(function));
    }
    found
}

/// How many of one list are in the other, each used once.
fn matching(was: &[Option<u64>], is: &[Option<u64>]) -> usize {
    let mut left: Vec<u64> = was.iter().flatten().copied().collect();
    let found = is.iter().flatten().filter(|wanted| {
        let at = left.iter().position(|fingerprint| fingerprint == *wanted);
        at.map(|at| left.swap_remove(at)).is_some()
    });
    found.count()
}
