//! Which functions differ between two executables, wherever they lie.
//!
//! A function of one is compared with that of the same name in the other: its instructions, and in place of each address what is
//! there. The compiler adds hashes of crates and types to names; where a name with its hash is in both, that is the same function,
//! and else all of the same name without it are compared together. What is not understood has changed.
//!
//! Where a case is watched for the functions that changed, none may be missing: [`Changed::is_all`] is false
//! where something differs that is in no function.

use std::collections::BTreeSet;

use object::elf;

use super::content::Contents;
use super::data;
use super::functions::{self, Function};
use super::image::Image;
use super::sides::{ChangedFunction, Sides};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Functions that differ, those first whose names say most: those that are in one alone or have other instructions, then those that
    /// only refer to something else, of which some are the same, since where a constant ends is not known. The standard library's are
    /// last, those that the change edits first, where that is known.
    pub functions: Vec<ChangedFunction>,
    /// Whether nothing else differs that could change what a program does.
    pub is_all: bool,
}

/// Compares all functions of two executables.
pub fn between(base: &Image, head: &Image) -> Changed {
    let (was, is) = functions::of_both(base, head);
    let mut sides = Sides::new([Contents::new(base, &was), Contents::new(head, &is)]);
    let mut changed = differing(&mut sides);
    if sides.widen(&changed) {
        changed = differing(&mut sides);
    }
    // A part that is split off a function is jumped to, and not always at its beginning.
    let has_parts = changed.iter().any(|function| function.name.contains(".cold"));
    let is_all = !has_parts
        && base.libraries == head.libraries
        && of_threads(base) == of_threads(head)
        && functions::outside(base, &was) == functions::outside(head, &is)
        && data::is_known(&mut sides, &changed);
    Changed { functions: changed, is_all }
}

/// The functions that differ, those first whose names say most.
fn differing(sides: &mut Sides) -> Vec<ChangedFunction> {
    let [of_base, of_head] = sides.contents.each_ref().map(|contents| functions::by_key(contents.functions));
    let all: BTreeSet<&str> = of_base.keys().chain(of_head.keys()).copied().collect();
    let mut changed = Vec::new();
    for key in all {
        let (was, is) = (of_base.get(key).cloned(), of_head.get(key).cloned());
        let (base, head) = unmatched(sides, was.unwrap_or_default(), is.unwrap_or_default());
        for at in 0..base.len().max(head.len()) {
            let place = |functions: &[&Function]| functions.get(at).map(|function| function.address);
            let shape = |functions: &[&Function]| functions.get(at).map(|function| function.shape);
            let has_other_instructions = shape(&base) != shape(&head);
            let name = functions::readable(key.as_bytes());
            let function = ChangedFunction { name, base: place(&base), head: place(&head), has_other_instructions };
            changed.push(((is_of_the_standard_library(&function.name), !has_other_instructions), function));
        }
    }
    changed.sort_by_key(|(says_less, _)| *says_less);
    changed.into_iter().map(|(_, function)| function).collect()
}

/// A method of a trait is named by its type first.
fn is_of_the_standard_library(name: &str) -> bool {
    ["core::", "alloc::", "std::", "<"].iter().any(|start| name.starts_with(start))
}

/// What each thread begins with.
fn of_threads<'data>(image: &Image<'data>) -> Vec<(&'data [u8], u64)> {
    let of_threads = image.sections.iter().filter(|section| section.flags.1 & elf::SHF_TLS.0 != 0);
    of_threads.map(|section| (section.bytes, section.size)).collect()
}

/// Those of each list that are not in the other, each used once.
fn unmatched<'b, 'data>(
    sides: &mut Sides<'_, '_>,
    was: Vec<&'b Function<'data>>,
    mut is: Vec<&'b Function<'data>>,
) -> (Vec<&'b Function<'data>>, Vec<&'b Function<'data>>) {
    let mut removed = Vec::new();
    if let ([one], [other]) = (&was[..], &is[..]) {
        return if sides.is_same([one, other]) { <_>::default() } else { (was, is) };
    }
    for function in was {
        let mut is_same = |other: &Function| sides.tried(|sides| sides.is_same([function, other]));
        match is.iter().position(|other| is_same(other)) {
            Some(at) => drop(is.swap_remove(at)),
            None => removed.push(function),
        }
    }
    (removed, is)
}
