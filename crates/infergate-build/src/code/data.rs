//! Data that differs without a function that says so.
//!
//! Functions are compared by what they lead to. Some data is found in another way: a list of a section by the section's ends, an object
//! from behind. So objects of a name and such lists are compared once more, each with the one that is called the same.

use std::collections::{BTreeMap, HashSet};

use super::content::{Contents, is_for_the_loader};
use super::image::{Pointer, Section};
use super::sides::ChangedFunction;
use super::sides::{POINTER, Sides};

/// Whether whatever differs of it is what one of the functions that changed leads to.
pub fn is_known(sides: &mut Sides, changed: &[ChangedFunction]) -> bool {
    let reached = [0, 1].map(|side| {
        let functions = changed.iter().filter_map(|function| function.place(side));
        reached(&sides.contents[side], functions)
    });
    let others = [other_objects(sides), other_slices(sides)].concat();
    others.into_iter().all(|(side, start)| reached[side].contains(&start))
}

/// Something of base, which is side 0, or of head that the other side has otherwise or lacks: where it begins.
type Other = (usize, u64);

/// What is in one alone is no other object: it does nothing before code refers to it.
fn other_objects(sides: &mut Sides) -> Vec<Other> {
    let [of_base, of_head] = sides.contents.each_ref().map(objects);
    let mut found = Vec::new();
    for (name, was) in &of_base {
        let Some(is) = of_head.get(name) else { continue };
        // In the same order most often: of many, each need not be compared with all.
        if was.len() == is.len() && was.iter().zip(is).all(|(was, is)| sides.is_same_object([*was, *is])) {
            continue;
        }
        let removed = was.iter().filter(|was| !is.iter().any(|is| sides.is_same_object([**was, *is])));
        found.extend(removed.map(|was| (0, *was)));
        let new = is.iter().filter(|is| !was.iter().any(|was| sides.is_same_object([*was, **is])));
        found.extend(new.map(|is| (1, *is)));
    }
    found
}

/// By name. Those that the compiler numbers, anew in each build, are left out: `vtable.2z`, `anon.0123.4`.
fn objects(contents: &Contents) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (start, (_, name)) in &contents.named {
        let end = name.rsplit_once('.').map(|(_, end)| end);
        if end.is_none_or(|end| name.contains("::") && !end.bytes().all(|byte| byte.is_ascii_digit())) {
            found.entry(name.clone()).or_default().push(*start);
        }
    }
    found
}

fn other_slices(sides: &mut Sides) -> Vec<Other> {
    let [base, head] = sides.contents.each_ref().map(|contents| &contents.image.sections);
    let mut found = Vec::new();
    for was in base.iter().filter(|section| section.is_slice()) {
        let is = head.iter().find(|is| is.name == was.name);
        if !is.is_some_and(|is| sides.section([was, is])) {
            found.push((0, was.address));
            found.extend(is.map(|is| (1, is.address)));
        }
    }
    let is_new = |is: &&Section| is.is_slice() && !base.iter().any(|was| was.name == is.name);
    found.extend(head.iter().filter(is_new).map(|is| (1, is.address)));
    found
}

/// Where everything begins that functions at these addresses lead to.
fn reached(contents: &Contents, functions: impl Iterator<Item = u64>) -> HashSet<u64> {
    let mut open: Vec<u64> = contents.taken_by(functions).into_iter().collect();
    let mut found = HashSet::new();
    let mut seen = HashSet::new();
    while let Some(address) = open.pop() {
        if !seen.insert(address) {
            continue;
        }
        open.extend(contents.object_before(address).map(|(start, _)| start).filter(|start| !found.contains(start)));
        let Some(section) = contents.image.section(address).filter(|section| !section.is_code()) else { continue };
        let (start, end) = match contents.object(address) {
            _ if section.is_slice() => (section.address, section.end()),
            Some((start, size, _)) => (start, start.saturating_add(size)),
            // One entry of many.
            None if is_for_the_loader(section) => (address, address.saturating_add(POINTER)),
            None => (address, address.saturating_add(contents.length(section, address))),
        };
        if found.insert(start) {
            found.extend(contents.named.range(start..end).map(|(object, _)| *object));
            let pointers = contents.image.pointers.range(start..end).map(|(_, pointer)| pointer);
            open.extend(pointers.filter_map(|pointer| if let Pointer::To(to) = pointer { Some(*to) } else { None }));
        }
    }
    found
}
