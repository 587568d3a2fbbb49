//! Base and head, side by side: whether the same is at an address of one and at an address of the other.
//!
//! Where a constant ends is not written in an executable, unless it has a name; it ends at the latest where another begins that
//! somebody refers to. So two are compared over the shorter of their lengths: if they were longer, code that reads what lies behind would
//! be other code. What begins in the middle of another is looked for afterwards, see [`Sides::widen`].

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::content::{Code, Contents, is_for_the_loader, is_variable};
use super::functions::{Function, Reference};
use super::image::{Pointer, Section};
use super::loaded::LOCATION;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFunction {
    /// Its name, without hashes.
    pub name: String,
    /// Where it begins in base, when that is loaded at zero; `None` where base has none.
    pub base: Option<u64>,
    /// The same in head.
    pub head: Option<u64>,
    /// Whether its instructions differ, or one side has none. Else it refers to something else, or is the same, see [`Changed`](super::changed::Changed).
    pub has_other_instructions: bool,
}

impl ChangedFunction {
    /// Where it begins in base, which is side 0, or in head.
    pub fn place(&self, side: usize) -> Option<u64> {
        [self.base, self.head][side]
    }
}

/// Constants refer to constants; deeper ones are not understood.
const MAX_DEPTH: usize = 64;
/// Functions of one name that call such functions are told apart by what these do, so many calls deep: more take minutes.
const MAX_STEPS: usize = 2;
/// Bytes that the loader writes at a place.
pub const POINTER: u64 = 8;

/// An address of base and one of head.
pub type Places = [u64; 2];

/// Two executables.
pub struct Sides<'a, 'data> {
    /// Those of base and of head.
    pub contents: [Contents<'a, 'data>; 2],
    /// How several functions of one side are called.
    ambiguous: HashSet<&'a str>,
    /// Those among them that also have the same instructions: neither says which is meant.
    twins: HashSet<(&'a str, u64)>,
    /// What of both was compared. What is being compared is taken for the same, so that a ring ends.
    known: HashMap<Places, bool>,
    /// Constants that are being compared, one within the other.
    depth: usize,
    /// The same of calls of functions of one name and the same instructions.
    steps: usize,
    /// What was found the same since the last function was begun.
    fresh: Vec<Places>,
    /// Constants without a name that were compared in part, as one side's ends earlier: where they begin, and their lengths.
    cut: Vec<(Places, [u64; 2])>,
    /// Those that differ, by where they begin.
    others: Vec<Places>,
    /// Where in each side constants begin that are taken for different, as they lie beside such a one.
    beside: [HashSet<u64>; 2],
}

/// What is there more than once.
fn several<T: Copy + Eq + Hash>(all: impl Iterator<Item = T>) -> HashSet<T> {
    let mut seen = HashSet::new();
    all.filter(|one| !seen.insert(*one)).collect()
}

impl<'a, 'data> Sides<'a, 'data> {
    pub fn new(contents: [Contents<'a, 'data>; 2]) -> Self {
        let (mut ambiguous, mut twins) = (HashSet::new(), HashSet::new());
        for contents in &contents {
            ambiguous.extend(several(contents.functions.iter().map(|function| &*function.key)));
            twins.extend(several(contents.functions.iter().map(|function| (&*function.key, function.shape))));
        }
        Self {
            contents,
            ambiguous,
            twins,
            known: HashMap::new(),
            depth: 0,
            steps: 0,
            fresh: Vec::new(),
            cut: Vec::new(),
            others: Vec::new(),
            beside: <_>::default(),
        }
    }

    /// Whether both functions do and read the same. What is not understood is not the same.
    pub fn is_same(&mut self, functions: [&Function; 2]) -> bool {
        self.begin(|sides| sides.function(functions))
    }

    /// Whether two objects of one name that begin at these addresses are the same.
    pub fn is_same_object(&mut self, places: Places) -> bool {
        self.begin(|sides| sides.meaning(places))
    }

    fn begin(&mut self, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.fresh.clear();
        let is_same = compare(self);
        if !is_same {
            // Something may have been the same only as long as what differs was taken for the same.
            for places in self.fresh.drain(..) {
                self.known.remove(&places);
            }
        }
        is_same
    }

    /// Takes those constants for different, too, that may be one with what differs or with what a function that changed takes: the middle or
    /// the end of them. Whether there are any.
    pub fn widen(&mut self, changed: &[ChangedFunction]) -> bool {
        for places in std::mem::take(&mut self.others) {
            let beside = self.each(places, Contents::beside);
            self.beside.iter_mut().zip(beside).for_each(|(all, beside)| all.extend(beside));
        }
        let taken = [0, 1].map(|side| self.contents[side].taken_by(changed.iter().filter_map(|it| it.place(side))));
        for (places, lengths) in std::mem::take(&mut self.cut) {
            let shorter = usize::from(lengths[1] < lengths[0]);
            if taken[shorter].contains(&places[shorter].saturating_add(lengths[shorter])) {
                self.beside.iter_mut().zip(places).for_each(|(all, place)| all.extend([place]));
            }
        }
        self.known.clear();
        self.beside.iter().any(|all| !all.is_empty())
    }

    /// A comparison of two that need not be one and the same: what differs says nothing of what lies beside it.
    pub fn tried(&mut self, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        let known = self.others.len();
        let is_same = compare(self);
        self.others.truncate(known);
        is_same
    }

    /// What is at both.
    fn each<'s, T>(&'s self, places: Places, get: impl Fn(&'s Contents<'a, 'data>, u64) -> T) -> [T; 2] {
        let [base, head] = &self.contents;
        [get(base, places[0]), get(head, places[1])]
    }

    fn sections(&self, places: Places) -> [Option<&'a Section<'data>>; 2] {
        self.each(places, |contents, place| contents.image.section(place))
    }

    fn function(&mut self, functions: [&Function; 2]) -> bool {
        let [was, is] = functions;
        if was.is_broken || is.is_broken || was.shape != is.shape || was.references.len() != is.references.len() {
            return false;
        }
        let mut references = was.references.iter().zip(&is.references);
        references.all(|(was, is)| self.reference([*was, *is], functions))
    }

    /// What was found of both before, or is now.
    fn once(&mut self, places: Places, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        if let Some(known) = self.known.get(&places) {
            return *known;
        }
        self.known.insert(places, true);
        let is_same = compare(self);
        self.known.insert(places, is_same);
        if is_same {
            self.fresh.push(places);
        }
        is_same
    }

    fn reference(&mut self, [was, is]: [Reference; 2], functions: [&Function; 2]) -> bool {
        let (bytes, places) = (was.bytes, [was.address, is.address]);
        if bytes != is.bytes {
            return false;
        }
        if bytes == 0 {
            let [base, head] = &self.contents;
            match [base.jump_table(was.address, functions[0]), head.jump_table(is.address, functions[1])] {
                [Some(was), Some(is)] => return self.same_jumps(&was, &is, functions),
                [None, None] => {}
                _ => return false,
            }
        }
        let [Some(in_base), Some(in_head)] = self.sections(places) else { return false };
        let is_constant = |section: &Section| !is_variable(section) && !is_for_the_loader(section);
        if bytes > 0 && is_constant(in_base) && is_constant(in_head) {
            return self.bytes(places, bytes.min(in_base.end() - was.address).min(in_head.end() - is.address));
        }
        self.meaning(places) && (bytes > 0 || self.is_same_before(places))
    }

    /// Whether the same object, or a slice that is a section, ends at both addresses, as in a loop that counts down, and differs not.
    fn is_same_before(&mut self, places: Places) -> bool {
        if let [Some(was), Some(is)] = self.each(places, |contents, place| contents.image.slice_before(place))
            && was.name == is.name
            && !self.section([was, is])
        {
            return false;
        }
        let objects = self.each(places, |contents, place| contents.object_before(place));
        let [Some((was, was_name)), Some((is, is_name))] = objects else { return true };
        was_name != is_name || self.meaning([was, is])
    }

    /// Whether two jump tables lead to the same places. They are compared as long as one of both leads into its own function, or both
    /// lead to the same other code, as to a part that was split off: an entry that leaves the function on one side alone is a change, and no
    /// end. What lies behind a table leads into a function by chance alone: then one that did not change is named.
    fn same_jumps(&mut self, was: &[u64], is: &[u64], [of_base, of_head]: [&Function; 2]) -> bool {
        for (&was, &is) in was.iter().zip(is) {
            match (of_base.holds(was), of_head.holds(is)) {
                (true, true) if was - of_base.address == is - of_head.address => {}
                (false, false) => match self.each([was, is], Contents::code) {
                    [Some(Code::Function(_)), Some(Code::Function(_))] if self.code([was, is]) => {}
                    [Some(_), Some(_)] => return false,
                    _ => return true,
                },
                _ => return false,
            }
        }
        true
    }

    /// Whether both addresses are of the same place in the same function.
    fn code(&mut self, places: Places) -> bool {
        let [was, is] = match self.each(places, Contents::code) {
            [Some(Code::Function(was)), Some(Code::Function(is))] => [was, is],
            [Some(Code::Stub(was)), Some(Code::Stub(is))] => return self.pointer([was, is]),
            [Some(Code::Open(was)), Some(Code::Open(is))] => return was == is,
            _ => return false,
        };
        let key = &*was.key;
        if key != is.key || places[0] - was.address != places[1] - is.address {
            return false;
        }
        if !self.ambiguous.contains(key) {
            return true;
        }
        let is_one = self.steps == MAX_STEPS || !self.twins.contains(&(key, was.shape));
        was.shape == is.shape && (is_one || self.once([was.address, is.address], |sides| sides.twin([was, is])))
    }

    fn twin(&mut self, functions: [&Function; 2]) -> bool {
        self.steps += 1;
        let is_same = self.tried(|sides| sides.function(functions));
        self.steps -= 1;
        is_same
    }

    /// Whether the same is at an address of base and at one of head.
    fn meaning(&mut self, places: Places) -> bool {
        let is_beside = self.beside.iter().zip(&places).any(|(all, place)| all.contains(place));
        if is_beside || self.depth == MAX_DEPTH {
            return false;
        }
        self.depth += 1;
        let is_same = self.is_same_at(places);
        self.depth -= 1;
        is_same
    }

    fn is_same_at(&mut self, places: Places) -> bool {
        let sections = self.sections(places);
        let [Some(in_base), Some(in_head)] = sections else {
            let [was, is] = self.each(places, Contents::outside);
            return sections.iter().all(Option::is_none) && was == is;
        };
        if in_base.is_code() || in_head.is_code() {
            return self.code(places);
        }
        if is_for_the_loader(in_base)
            && is_for_the_loader(in_head)
            && let [Some(was), Some(is)] = self.each(places, |contents, place| contents.image.pointers.get(&place))
        {
            return self.pointer([was, is]);
        }
        if is_variable(in_base) != is_variable(in_head) {
            return false;
        }
        if in_base.is_slice() && in_head.is_slice() {
            return places[0] - in_base.address == places[1] - in_head.address && self.section([in_base, in_head]);
        }
        let has_unnamed = self.each(places, |contents, place| contents.object(place).is_none()).contains(&true);
        let is_same = self.once(places, |sides| match sides.each(places, |contents, place| contents.object(place)) {
            // The whole object: an address in it can be one to count back from.
            [Some((was, size, was_name)), Some((is, other_size, is_name))] => {
                let is_one = !is_variable(in_base) || was_name == is_name;
                is_one && places[0] - was == places[1] - is && size == other_size && sides.bytes([was, is], size)
            }
            _ => {
                let lengths =
                    [sides.contents[0].length(in_base, places[0]), sides.contents[1].length(in_head, places[1])];
                if lengths[0] != lengths[1] {
                    sides.cut.push((places, lengths));
                }
                sides.constant(places, lengths[0].min(lengths[1]))
            }
        });
        if !is_same && has_unnamed {
            self.others.push(places);
        }
        is_same
    }

    /// Whether two sections hold the same: one whose parts are found by its ends alone.
    pub fn section(&mut self, [was, is]: [&Section; 2]) -> bool {
        let places = [was.address, is.address];
        was.name == is.name && was.size == is.size && self.once(places, |sides| sides.bytes(places, was.size))
    }

    fn constant(&mut self, places: Places, bytes: u64) -> bool {
        let tables = self.each(places, |contents, place| contents.tables.get(&place).cloned());
        let [Some(of_base), Some(of_head)] = tables else { return self.bytes(places, bytes) };
        let rest = 4 * of_base.len().min(of_head.len()) as u64;
        of_base.into_iter().zip(of_head).all(|(was, is)| self.meaning([was, is]))
            // What a table leads to can begin within what was taken for the table.
            && self.bytes(places.map(|place| place.saturating_add(rest)), bytes.saturating_sub(rest))
    }

    fn pointer(&mut self, pointers: [&Pointer; 2]) -> bool {
        match pointers {
            [Pointer::To(was), Pointer::To(is)] => self.meaning([*was, *is]),
            [was, is] => was == is,
        }
    }

    /// Whether so many bytes are the same, pointers among them by what they point to. Of a panic's location neither file nor line
    /// counts.
    fn bytes(&mut self, places: Places, bytes: u64) -> bool {
        let [of_base, of_head] = self.each(places, |contents, from| {
            let found = contents.image.pointers.range(from..from.saturating_add(bytes));
            found.map(|(place, pointer)| (place - from, pointer)).collect::<Vec<_>>()
        });
        let is_same_between = |sides: &Self, start: u64, end: u64| {
            let [was, is] =
                sides.each(places, |contents, from| contents.image.bytes(from.saturating_add(start), end - start));
            was == is
        };
        let mut at = 0;
        for (&(place, was), &(other, is)) in of_base.iter().zip(&of_head) {
            if place != other {
                return false;
            }
            if place < at {
                continue;
            }
            if !is_same_between(self, at, place) {
                return false;
            }
            let behind = place.saturating_add(LOCATION);
            let are_locations = self.each(places, |contents, from| contents.is_location(from.saturating_add(place)));
            if behind <= bytes && are_locations == [true; 2] {
                at = behind;
            } else if self.pointer([was, is]) {
                at = place.saturating_add(POINTER).min(bytes);
            } else {
                return false;
            }
        }
        of_base.len() == of_head.len() && is_same_between(self, at, bytes)
    }
}
