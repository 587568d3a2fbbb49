//! Which functions differ between two programs, wherever they lie.
//!
//! The compiler adds hashes of crates and types to names. If both sides have a name with its hash, that is one function. Otherwise all
//! functions of the same name without hash are compared together.
//!
//! Cases are watched for the functions that changed, so none may be missing: [`Changed::is_complete`] is false if something differs that is
//! in no function.

use std::collections::BTreeSet;

use super::linked::Linked;
use super::names::readable;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFunction {
    /// Its name, without hashes.
    pub name: String,
    /// Where it begins in base, when that is loaded at zero; `None` where base has none.
    pub base: Option<u64>,
    /// The same in head.
    pub head: Option<u64>,
    /// Whether its instructions differ, or one side lacks it; false: only its references differ.
    pub has_other_instructions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Functions that differ. The program's own come before the standard library's, and among both those with other instructions, or that
    /// one side lacks, before those that only refer to something else.
    pub functions: Vec<ChangedFunction>,
    /// Whether nothing else differs that could change what the program does.
    pub is_complete: bool,
}

impl Changed {
    /// What differs between both.
    pub fn between([base, head]: &[Linked; 2]) -> Self {
        let names: BTreeSet<&String> = base.functions.keys().chain(head.functions.keys()).collect();
        let mut changed = Vec::new();
        let mut is_complete = base.unnamed_hashes() == head.unnamed_hashes();
        for shared_name in names {
            let [removed, new] = [[base, head], [head, base]].map(|sides| only_in(sides, shared_name));
            let own_hashes = |side: &Linked, functions: &[usize]| -> BTreeSet<u64> {
                functions.iter().map(|function| side.unit(*function).own_hash).collect()
            };
            let has_other_instructions = own_hashes(base, &removed) != own_hashes(head, &new);
            let name = readable(shared_name.as_bytes());
            // Or a method of a trait, which is named `<Type as Trait>::method`.
            let is_of_std = ["core::", "alloc::", "std::", "<"].iter().any(|start| name.starts_with(start));
            // A part that is split off a function can be entered in the middle, where nobody watches.
            is_complete &= !name.contains(".cold") || removed.is_empty() && new.is_empty();
            let (mut in_base, mut in_head) = (base.places(&removed).into_iter(), head.places(&new).into_iter());
            loop {
                let (base, head) = (in_base.next(), in_head.next());
                if base.or(head).is_none() {
                    break;
                }
                let function = ChangedFunction { name: name.clone(), base, head, has_other_instructions };
                changed.push(((is_of_std, !has_other_instructions), function));
            }
        }
        changed.sort_by_key(|(rank, _)| *rank);
        Self { functions: changed.into_iter().map(|(_, function)| function).collect(), is_complete }
    }
}

/// The functions of a name that one side has and the other lacks. Copies of a function count as one.
fn only_in([side, other]: [&Linked; 2], name: &str) -> Vec<usize> {
    let of = |side: &Linked| side.functions.get(name).cloned().unwrap_or_default();
    let there: BTreeSet<u64> = of(other).into_iter().map(|function| other.hashes[function]).collect();
    of(side).into_iter().filter(|function| !there.contains(&side.hashes[*function])).collect()
}
