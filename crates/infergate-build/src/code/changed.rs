//! Which functions differ between two programs, wherever they lie.
//!
//! A function of one is compared with that of the same name in the other. The compiler adds hashes of crates and types to names; where a
//! name with its hash is in both, that is the same function, and else all of the same name without it are compared together.
//!
//! Where a case is watched for the functions that changed, none may be missing: [`Changed::is_all`] is false where something differs
//! that is in no function.

use std::collections::BTreeSet;

use super::names::readable;
use super::sides::{Side, Sides};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFunction {
    /// Its name, without hashes.
    pub name: String,
    /// Where it begins in base, when that is loaded at zero; `None` where base has none.
    pub base: Option<u64>,
    /// The same in head.
    pub head: Option<u64>,
    /// Whether its instructions differ, or one side has none. Else it refers to something else.
    pub has_other_instructions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Functions that differ, those first whose names say most: those that are in one alone or have other instructions, then those that
    /// only refer to something else. The standard library's are last, those that the change edits first, where that is known.
    pub functions: Vec<ChangedFunction>,
    /// Whether nothing else differs that could change what a program does.
    pub is_all: bool,
}

impl Changed {
    /// What differs between both.
    pub fn between(sides: &Sides) -> Self {
        let Sides([base, head]) = sides;
        let keys: BTreeSet<&String> = base.functions.keys().chain(head.functions.keys()).collect();
        let mut changed = Vec::new();
        let mut is_all = base.outside() == head.outside();
        for key in keys {
            let (was, is) =
                unmatched([base, head].map(|side| (side, side.functions.get(key).map_or(&[][..], Vec::as_slice))));
            for at in 0..was.len().max(is.len()) {
                let (was, is) = (was.get(at).copied(), is.get(at).copied());
                let place = |side: &Side, function: Option<usize>| function.and_then(|function| side.address(function));
                let (in_base, in_head) = (place(base, was), place(head, is));
                let name = readable(key.as_bytes());
                // A part that is split off a function is jumped to, and not always at its beginning.
                is_all &=
                    in_base.is_some() == was.is_some() && in_head.is_some() == is.is_some() && !name.contains(".cold");
                let has_other_instructions = was.map(|was| base.unit(was).shape) != is.map(|is| head.unit(is).shape);
                let function = ChangedFunction { name, base: in_base, head: in_head, has_other_instructions };
                changed.push(((is_of_the_standard_library(&function.name), !has_other_instructions), function));
            }
        }
        changed.sort_by_key(|(says_less, _)| *says_less);
        Self { functions: changed.into_iter().map(|(_, function)| function).collect(), is_all }
    }
}

/// A method of a trait is named by its type first.
fn is_of_the_standard_library(name: &str) -> bool {
    ["core::", "alloc::", "std::", "<"].iter().any(|start| name.starts_with(start))
}

/// Those of each list that are not in the other, each used once.
fn unmatched([(base, was), (head, is)]: [(&Side, &[usize]); 2]) -> (Vec<usize>, Vec<usize>) {
    let (mut removed, mut new) = (Vec::new(), is.to_vec());
    for function in was {
        match new.iter().position(|other| head.contents[*other] == base.contents[*function]) {
            Some(at) => drop(new.remove(at)),
            None => removed.push(*function),
        }
    }
    (removed, new)
}
