//! Base and head, side by side: whether the same is at an address of one and at an address of the other.
//!
//! Where a constant ends is not written in an executable, unless it has a name; it ends at the latest where another begins that
//! somebody refers to. So two are compared over the shorter of their lengths: if they were longer, code that reads what lies behind would
//! be other code. What begins in the middle of another is looked for afterwards, see [`Sides::widen`].

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::content::{Code, Contents, is_for_the_loader, is_variable};
use super::functions::{Function, Reference};
use super::image::{Image, Pointer, Section};
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

/// Constants refer to constants; deeper ones are not understood.
const MAX_DEPTH: usize = 64;
/// Functions of one name that call such functions are told apart by what these do, so many calls deep: more take minutes.
const MAX_STEPS: usize = 2;
/// Bytes that the loader writes at a place.
pub const POINTER: u64 = 8;

/// Two executables.
pub struct Sides<'a, 'data> {
    pub base: Contents<'a, 'data>,
    pub head: Contents<'a, 'data>,
    /// How several functions of one side are called.
    ambiguous: HashSet<&'a str>,
    /// Those among them that also have the same instructions: neither says which is meant.
    twins: HashSet<(&'a str, u64)>,
    /// What of base and head was compared. What is being compared is taken for the same, so that a ring ends.
    known: HashMap<(u64, u64), bool>,
    /// Calls of functions of one name and the same instructions that are being compared, one within the other.
    steps: usize,
    /// What was found the same since the last function was begun.
    fresh: Vec<(u64, u64)>,
    /// Constants without a name that were compared in part, as one side's ends earlier: where they begin, and their lengths.
    cut: Vec<(u64, u64, u64, u64)>,
    /// Those that differ, by where they begin.
    others: Vec<(u64, u64)>,
    /// Where in base and in head constants begin that are taken for different, as they lie beside such a one.
    beside: (HashSet<u64>, HashSet<u64>),
}

/// What is there more than once.
fn several<T: Copy + Eq + Hash>(all: impl Iterator<Item = T>) -> HashSet<T> {
    let mut seen = HashSet::new();
    all.filter(|one| !seen.insert(*one)).collect()
}

impl<'a, 'data> Sides<'a, 'data> {
    pub fn new(base: Contents<'a, 'data>, head: Contents<'a, 'data>) -> Self {
        let (mut ambiguous, mut twins) = (HashSet::new(), HashSet::new());
        for contents in [&base, &head] {
            let keys = || contents.keys.iter().map(String::as_str);
            let shapes = contents.functions.iter().map(|function| function.shape);
            ambiguous.extend(several(keys()));
            twins.extend(several(keys().zip(shapes)));
        }
        Self {
            base,
            head,
            ambiguous,
            twins,
            known: HashMap::new(),
            steps: 0,
            fresh: Vec::new(),
            cut: Vec::new(),
            others: Vec::new(),
            beside: <_>::default(),
        }
    }

    /// Whether both functions do and read the same. What is not understood is not the same.
    pub fn is_same(&mut self, was: &Function, is: &Function) -> bool {
        self.fresh.clear();
        let is_same = self.function(was, is, MAX_DEPTH);
        if !is_same {
            self.forget();
        }
        is_same
    }

    /// Takes those constants for different, too, that may be one with what differs or with what a function that changed takes: the middle or
    /// the end of them. Whether there are any.
    pub fn widen(&mut self, changed: &[ChangedFunction]) -> bool {
        for (was, is) in std::mem::take(&mut self.others) {
            self.beside.0.extend(self.base.beside(was));
            self.beside.1.extend(self.head.beside(is));
        }
        let in_base = self.base.taken_by(changed.iter().filter_map(|function| function.base));
        let in_head = self.head.taken_by(changed.iter().filter_map(|function| function.head));
        for (was, is, of_base, of_head) in std::mem::take(&mut self.cut) {
            let is_cut = if of_base < of_head {
                in_base.contains(&was.saturating_add(of_base))
            } else {
                in_head.contains(&is.saturating_add(of_head))
            };
            if is_cut {
                self.beside.0.insert(was);
                self.beside.1.insert(is);
            }
        }
        self.known.clear();
        !(self.beside.0.is_empty() && self.beside.1.is_empty())
    }

    /// A comparison of two that need not be one and the same: what differs says nothing of what lies beside it.
    pub fn tried(&mut self, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        let known = self.others.len();
        let is_same = compare(self);
        self.others.truncate(known);
        is_same
    }

    /// Something may have been the same only as long as what differs was taken for the same.
    fn forget(&mut self) {
        for pair in self.fresh.drain(..) {
            self.known.remove(&pair);
        }
    }

    fn function(&mut self, was: &Function, is: &Function, depth: usize) -> bool {
        if was.is_broken || is.is_broken || was.shape != is.shape || was.references.len() != is.references.len() {
            return false;
        }
        let mut references = was.references.iter().zip(&is.references);
        references.all(|(of_base, of_head)| self.reference(*of_base, was, *of_head, is, depth))
    }

    /// What was found of both before, or is now.
    fn once(&mut self, pair: (u64, u64), compare: impl FnOnce(&mut Self) -> bool) -> bool {
        if let Some(known) = self.known.get(&pair) {
            return *known;
        }
        self.known.insert(pair, true);
        let is_same = compare(self);
        self.known.insert(pair, is_same);
        if is_same {
            self.fresh.push(pair);
        }
        is_same
    }

    fn reference(
        &mut self,
        was: Reference,
        of_base: &Function,
        is: Reference,
        of_head: &Function,
        depth: usize,
    ) -> bool {
        if was.bytes != is.bytes {
            return false;
        }
        if was.bytes == 0 {
            match (self.base.jump_table(was.address, of_base), self.head.jump_table(is.address, of_head)) {
                (Some(was), Some(is)) => return self.same_jumps(&was, of_base, &is, of_head, depth),
                (None, None) => {}
                _ => return false,
            }
        }
        let (Some(in_base), Some(in_head)) =
            (self.base.image.section(was.address), self.head.image.section(is.address))
        else {
            return false;
        };
        let is_constant = |section: &Section| !is_variable(section) && !is_for_the_loader(section);
        if was.bytes > 0 && is_constant(in_base) && is_constant(in_head) {
            let bytes = was.bytes.min(in_base.end() - was.address).min(in_head.end() - is.address);
            return self.bytes(was.address, is.address, bytes, depth);
        }
        self.meaning(was.address, is.address, depth)
            && (was.bytes > 0 || self.is_same_before(was.address, is.address, depth))
    }

    /// Whether the same object, or a slice that is a section, ends at both addresses, as in a loop that counts down, and differs not.
    fn is_same_before(&mut self, was: u64, is: u64, depth: usize) -> bool {
        let slices = (self.base.image.slice_before(was), self.head.image.slice_before(is));
        if let (Some(was), Some(is)) = slices
            && was.name == is.name
            && !self.section(was, is)
        {
            return false;
        }
        let objects = (self.base.object_before(was), self.head.object_before(is));
        let (Some((was, was_name)), Some((is, is_name))) = objects else { return true };
        was_name != is_name || self.meaning(was, is, depth)
    }

    /// Whether two jump tables lead to the same places. They are compared as long as one of both leads into its own function, or both
    /// lead to the same other code, as to a part that was split off: an entry that leaves the function on one side alone is a change, and no
    /// end. What lies behind a table leads into a function by chance alone: then one that did not change is named.
    fn same_jumps(&mut self, was: &[u64], of_base: &Function, is: &[u64], of_head: &Function, depth: usize) -> bool {
        for (was, is) in was.iter().zip(is) {
            match (of_base.holds(*was), of_head.holds(*is)) {
                (true, true) if was - of_base.address == is - of_head.address => {}
                (false, false) => match (self.base.code(*was), self.head.code(*is)) {
                    (Some(Code::Function(_)), Some(Code::Function(_))) if self.code(*was, *is, depth) => {}
                    (Some(_), Some(_)) => return false,
                    _ => return true,
                },
                _ => return false,
            }
        }
        true
    }

    /// Whether both addresses are of the same place in the same function.
    fn code(&mut self, was: u64, is: u64, depth: usize) -> bool {
        let (of_base, of_head) = match (self.base.code(was), self.head.code(is)) {
            (Some(Code::Function(of_base)), Some(Code::Function(of_head))) => (of_base, of_head),
            (Some(Code::Stub(was)), Some(Code::Stub(is))) => return self.pointer(&was, &is, depth),
            (Some(Code::Open(was)), Some(Code::Open(is))) => return was == is,
            _ => return false,
        };
        let key = self.base.keys[of_base].as_str();
        let (of_base, other, of_head) =
            (&self.base.functions[of_base], &self.head.keys[of_head], &self.head.functions[of_head]);
        if key != other || was - of_base.address != is - of_head.address {
            return false;
        }
        if !self.ambiguous.contains(key) {
            return true;
        }
        let is_one = self.steps == MAX_STEPS || !self.twins.contains(&(key, of_base.shape));
        of_base.shape == of_head.shape
            && (is_one || self.once((of_base.address, of_head.address), |sides| sides.twin(of_base, of_head, depth)))
    }

    fn twin(&mut self, was: &Function, is: &Function, depth: usize) -> bool {
        self.steps += 1;
        let is_same = self.tried(|sides| sides.function(was, is, depth));
        self.steps -= 1;
        is_same
    }

    /// Whether the same is at an address of base and at one of head.
    fn meaning(&mut self, was: u64, is: u64, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1).filter(|_| !self.is_beside(was, is)) else { return false };
        let (Some(in_base), Some(in_head)) = (self.base.image.section(was), self.head.image.section(is)) else {
            return self.base.image.section(was).is_none() == self.head.image.section(is).is_none()
                && self.base.outside(was) == self.head.outside(is);
        };
        if in_base.is_code() || in_head.is_code() {
            return self.code(was, is, depth);
        }
        if is_for_the_loader(in_base) && is_for_the_loader(in_head) {
            let pointers = (self.base.image.pointers.get(&was).cloned(), self.head.image.pointers.get(&is).cloned());
            if let (Some(was), Some(is)) = pointers {
                return self.pointer(&was, &is, depth);
            }
        }
        if is_variable(in_base) != is_variable(in_head) {
            return false;
        }
        if in_base.is_slice() && in_head.is_slice() {
            return was - in_base.address == is - in_head.address && self.section(in_base, in_head);
        }
        let is_same = self.once((was, is), |sides| match (sides.base.object(was), sides.head.object(is)) {
            // The whole object: an address in it can be one to count back from.
            (Some((was_start, was_size, was_name)), Some((is_start, is_size, is_name))) => {
                let is_one = !is_variable(in_base) || was_name == is_name;
                is_one
                    && was - was_start == is - is_start
                    && was_size == is_size
                    && sides.bytes(was_start, is_start, was_size, depth)
            }
            _ => {
                let (of_base, of_head) = (sides.base.length(in_base, was), sides.head.length(in_head, is));
                if of_base != of_head {
                    sides.cut.push((was, is, of_base, of_head));
                }
                sides.constant(was, is, of_base.min(of_head), depth)
            }
        });
        if !is_same && (self.base.object(was).is_none() || self.head.object(is).is_none()) {
            self.others.push((was, is));
        }
        is_same
    }

    fn is_beside(&self, was: u64, is: u64) -> bool {
        self.beside.0.contains(&was) || self.beside.1.contains(&is)
    }

    /// Whether two sections hold the same: one whose parts are found by its ends alone.
    pub fn section(&mut self, was: &Section, is: &Section) -> bool {
        was.name == is.name
            && was.size == is.size
            && self.once((was.address, is.address), |sides| sides.bytes(was.address, is.address, was.size, MAX_DEPTH))
    }

    /// Whether two objects of one name that begin at these addresses are the same.
    pub fn is_same_object(&mut self, was: u64, is: u64) -> bool {
        self.fresh.clear();
        let is_same = self.meaning(was, is, MAX_DEPTH);
        if !is_same {
            self.forget();
        }
        is_same
    }

    fn constant(&mut self, was: u64, is: u64, bytes: u64, depth: usize) -> bool {
        let (Some(of_base), Some(of_head)) = (self.base.tables.get(&was), self.head.tables.get(&is)) else {
            return self.bytes(was, is, bytes, depth);
        };
        let targets: Vec<(u64, u64)> = of_base.iter().copied().zip(of_head.iter().copied()).collect();
        let rest = 4 * targets.len() as u64;
        targets.into_iter().all(|(was, is)| self.meaning(was, is, depth))
            // What a table leads to can begin within what was taken for the table.
            && self.bytes(was.saturating_add(rest), is.saturating_add(rest), bytes.saturating_sub(rest), depth)
    }

    fn pointer(&mut self, was: &Pointer, is: &Pointer, depth: usize) -> bool {
        match (was, is) {
            (Pointer::To(was), Pointer::To(is)) => self.meaning(*was, *is, depth),
            (was, is) => was == is,
        }
    }

    /// Whether so many bytes are the same, pointers among them by what they point to. Of a panic's location neither file nor line
    /// counts.
    fn bytes(&mut self, was: u64, is: u64, bytes: u64, depth: usize) -> bool {
        let places = |image: &Image, from: u64| -> Vec<(u64, Pointer)> {
            let found = image.pointers.range(from..from.saturating_add(bytes));
            found.map(|(place, pointer)| (place - from, pointer.clone())).collect()
        };
        let (of_base, of_head) = (places(self.base.image, was), places(self.head.image, is));
        let raw = |image: &Image<'data>, from: u64, (start, end): (u64, u64)| {
            image.bytes(from.saturating_add(start), end - start)
        };
        let mut at = 0;
        let mut head = of_head.iter();
        for (place, pointer) in &of_base {
            let Some((other, to)) = head.next() else { return false };
            if place != other {
                return false;
            }
            if *place < at {
                continue;
            }
            if raw(self.base.image, was, (at, *place)) != raw(self.head.image, is, (at, *place)) {
                return false;
            }
            if place.saturating_add(LOCATION) <= bytes
                && self.base.is_location(was.saturating_add(*place))
                && self.head.is_location(is.saturating_add(*place))
            {
                at = place.saturating_add(LOCATION);
            } else if self.pointer(pointer, to, depth) {
                at = place.saturating_add(POINTER).min(bytes);
            } else {
                return false;
            }
        }
        head.next().is_none() && raw(self.base.image, was, (at, bytes)) == raw(self.head.image, is, (at, bytes))
    }
}
