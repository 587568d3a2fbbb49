//! What addresses in instructions mean: which function, which variable, or which constant, by its bytes.
//!
//! Base and head are compared side by side. Where a constant ends is not written in an executable, unless it has a name; it ends at
//! the latest where another begins that somebody refers to. So two are compared over the shorter of their lengths: if they were
//! longer, code that reads what lies behind would be other code.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;

use object::{SymbolKind, elf};

use super::functions::{self, Function, Reference};
use super::image::{Image, Pointer, Section};
use super::loaded::{LOCATION, location};

/// Constants refer to constants; deeper ones are not understood.
const MAX_DEPTH: usize = 64;
/// Bytes that the loader writes at a place.
const POINTER: u64 = 8;

/// An executable's functions and constants.
pub struct Contents<'a, 'data> {
    image: &'a Image<'data>,
    functions: &'a [Function<'data>],
    /// How each function is called in both executables.
    keys: &'a [String],
    /// Keys that several functions have, so that a name alone does not say which is meant.
    ambiguous: &'a HashSet<String>,
    /// Where constants begin and end.
    bounds: BTreeSet<u64>,
    /// Variables and constants that have a name, by address: size and name.
    named: BTreeMap<u64, (u64, String)>,
    /// Tables of distances to other constants, by address: what a `match` with a text for each arm becomes. Where one function takes
    /// a table's address and another reads it, it is compared by its bytes: the one that takes the address is named also where the
    /// table's texts merely moved. A process that reads it has run that one before, so its case is never called layout by mistake.
    tables: HashMap<u64, Vec<u64>>,
}

impl<'a, 'data> Contents<'a, 'data> {
    /// Of these functions, with their keys.
    pub fn new(
        image: &'a Image<'data>,
        functions: &'a [Function<'data>],
        keys: &'a [String],
        ambiguous: &'a HashSet<String>,
    ) -> Self {
        // Only an address that is taken begins a constant: a load of known size may be from the middle of one.
        let taken = functions.iter().flat_map(|function| &function.references).filter(|reference| reference.bytes == 0);
        let mut bounds: BTreeSet<u64> = taken.map(|reference| reference.address).collect();
        bounds.extend(image.pointers.values().filter_map(|pointer| match pointer {
            Pointer::To(address) => Some(*address),
            Pointer::Other(..) => None,
        }));
        let mut named = BTreeMap::new();
        for symbol in image.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Data && symbol.size > 0) {
            bounds.extend([symbol.address, symbol.address.saturating_add(symbol.size)]);
            named.insert(symbol.address, (symbol.size, readable(symbol.name)));
        }
        // Else numbers that happen to lead somewhere would be taken for a table.
        let readers = functions.iter().filter(|function| function.reads_distances);
        let read = readers.flat_map(|function| &function.references).filter(|reference| reference.bytes == 0);
        let tables: HashMap<u64, Vec<u64>> = read
            .filter_map(|reference| Some((reference.address, distances(image, &bounds, reference.address)?)))
            .collect();
        bounds.extend(tables.values().flatten());
        Self { image, functions, keys, ambiguous, bounds, named, tables }
    }

    /// The object of a name that an address lies in: where it begins, its size, its name.
    fn object(&self, address: u64) -> Option<(u64, u64, &str)> {
        let (start, (size, name)) = self.named.range(..=address).next_back()?;
        (address - start < *size).then_some((*start, *size, name))
    }

    /// Which function an address of code lies in, and where in it; of a stub of the linker, what it leads to.
    fn code(&self, address: u64) -> Option<Code> {
        let at = self.functions.partition_point(|function| function.address <= address).checked_sub(1)?;
        let function = &self.functions[at];
        if !function.holds(address) {
            let place = functions::stub(self.image, address)?;
            return Some(Code::Stub(self.image.pointers.get(&place)?.clone()));
        }
        let key = &self.keys[at];
        let shape = self.ambiguous.contains(key).then_some(function.shape);
        Some(Code::Function(hash(&(key, address - function.address, shape))))
    }

    /// The longest that what begins at `address` can be, bytes.
    fn length(&self, section: &Section, address: u64) -> u64 {
        end(&self.bounds, section, address) - address
    }

    /// An address without anything at it, by the section it ends.
    fn beside(&self, address: u64) -> (u64, u64) {
        let before = self.image.sections.iter().rev().find(|section| section.address <= address);
        before.map_or((0, address), |section| (hash(&section.name), address - section.end().min(address)))
    }

    /// What a jump table of `function` at `address` leads to: distances from the table, four bytes each. `None` where its first entry
    /// leads elsewhere. What lies behind its last entry is read as entries, too, since where it ends is not known.
    fn jump_table(&self, address: u64, function: &Function) -> Option<Vec<u64>> {
        let section = self.image.section(address).filter(|section| function.jumps_by_table && !section.is_code())?;
        let mut targets = entries(self.image, address, end(&self.bounds, section, address))?;
        let first = targets.next().filter(|target| function.holds(*target))?;
        Some(iter::once(first).chain(targets).collect())
    }
}

/// What an address of code means.
enum Code {
    /// A hash of the function's key and the place in it.
    Function(u64),
    /// What the loader writes where the stub jumps to.
    Stub(Pointer),
}

/// Two executables, side by side.
pub struct Sides<'a, 'data> {
    base: Contents<'a, 'data>,
    head: Contents<'a, 'data>,
    /// Constants of base and head that were compared. Those that are being compared are taken for the same, so that a ring of them
    /// ends.
    known: HashMap<(u64, u64), bool>,
    /// What was found the same since the last function was begun.
    fresh: Vec<(u64, u64)>,
}

impl<'a, 'data> Sides<'a, 'data> {
    pub fn new(base: Contents<'a, 'data>, head: Contents<'a, 'data>) -> Self {
        Self { base, head, known: HashMap::new(), fresh: Vec::new() }
    }

    /// Whether both functions do and read the same. What is not understood is not the same.
    pub fn is_same(&mut self, was: &Function, is: &Function) -> bool {
        if was.is_broken || is.is_broken || was.shape != is.shape || was.references.len() != is.references.len() {
            return false;
        }
        self.fresh.clear();
        let mut references = was.references.iter().zip(&is.references);
        let is_same = references.all(|(of_base, of_head)| self.reference(*of_base, was, *of_head, is));
        if !is_same {
            // Something may have been the same only as long as what differs was taken for the same.
            for pair in self.fresh.drain(..) {
                self.known.remove(&pair);
            }
        }
        is_same
    }

    fn reference(&mut self, was: Reference, of_base: &Function, is: Reference, of_head: &Function) -> bool {
        if was.bytes != is.bytes {
            return false;
        }
        if was.bytes == 0 {
            match (self.base.jump_table(was.address, of_base), self.head.jump_table(is.address, of_head)) {
                (Some(was), Some(is)) => return self.same_jumps(&was, of_base, &is, of_head),
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
            return self.bytes(was.address, is.address, bytes, MAX_DEPTH);
        }
        self.meaning(was.address, is.address, MAX_DEPTH)
    }

    /// Whether two jump tables lead to the same places. They are compared as long as one of both leads into its own function, or both
    /// lead to the same other code, as to a part that was split off: an entry that leaves the function on one side alone is a change, and no
    /// end. What lies behind a table leads into a function by chance alone: then one that did not change is named.
    fn same_jumps(&self, was: &[u64], of_base: &Function, is: &[u64], of_head: &Function) -> bool {
        for (was, is) in was.iter().zip(is) {
            match (of_base.holds(*was), of_head.holds(*is)) {
                (true, true) if was - of_base.address == is - of_head.address => {}
                (false, false) => match (self.base.code(*was), self.head.code(*is)) {
                    (Some(Code::Function(was)), Some(Code::Function(is))) if was == is => {}
                    (Some(_), Some(_)) => return false,
                    _ => return true,
                },
                _ => return false,
            }
        }
        true
    }

    /// Whether the same is at an address of base and at one of head.
    fn meaning(&mut self, was: u64, is: u64, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let (Some(in_base), Some(in_head)) = (self.base.image.section(was), self.head.image.section(is)) else {
            return self.base.image.section(was).is_none() == self.head.image.section(is).is_none()
                && self.base.beside(was) == self.head.beside(is);
        };
        if in_base.is_code() || in_head.is_code() {
            return match (self.base.code(was), self.head.code(is)) {
                (Some(Code::Function(was)), Some(Code::Function(is))) => was == is,
                (Some(Code::Stub(was)), Some(Code::Stub(is))) => self.pointer(&was, &is, depth),
                _ => false,
            };
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
        if let Some(known) = self.known.get(&(was, is)) {
            return *known;
        }
        self.known.insert((was, is), true);
        let is_same = match (self.base.object(was), self.head.object(is)) {
            // The whole object: an address in it can be one to count back from.
            (Some((was_start, was_size, was_name)), Some((is_start, is_size, is_name))) => {
                let is_one = !is_variable(in_base) || was_name == is_name;
                is_one
                    && was - was_start == is - is_start
                    && was_size == is_size
                    && self.bytes(was_start, is_start, was_size, depth)
            }
            _ => self.constant(was, is, self.base.length(in_base, was).min(self.head.length(in_head, is)), depth),
        };
        self.known.insert((was, is), is_same);
        if is_same {
            self.fresh.push((was, is));
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
            let is_location = |image: &Image, from: u64| location(image, from.saturating_add(*place)).is_some();
            if place.saturating_add(LOCATION) <= bytes
                && is_location(self.base.image, was)
                && is_location(self.head.image, is)
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

/// Where the constant at `address` ends, as far as is known.
fn end(bounds: &BTreeSet<u64>, section: &Section, address: u64) -> u64 {
    bounds.range(address.saturating_add(1)..).next().map_or(section.end(), |bound| section.end().min(*bound))
}

/// What numbers of four bytes lead to, as distances from the first of them.
fn entries<'data>(image: &Image<'data>, address: u64, end: u64) -> Option<impl Iterator<Item = u64> + use<'data>> {
    let entries = image.bytes(address, (end - address) / 4 * 4)?.chunks_exact(4);
    let number = |entry: &[u8]| entry.try_into().map(i32::from_le_bytes).unwrap_or_default();
    Some(entries.map(move |entry| address.wrapping_add_signed(number(entry).into())))
}

/// The constants that a table at `address` leads to. A list of small numbers would lead into itself.
fn distances(image: &Image, bounds: &BTreeSet<u64>, address: u64) -> Option<Vec<u64>> {
    let is_constant = |section: &&Section| section.name == b".rodata";
    let section = image.section(address).filter(is_constant)?;
    let end = end(bounds, section, address);
    let leads_out =
        |target: &u64| !(address..end).contains(target) && image.section(*target).as_ref().is_some_and(is_constant);
    let table: Vec<u64> = entries(image, address, end)?.take_while(leads_out).collect();
    (table.len() > 1).then_some(table)
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A name without the hashes of crates and types that the compiler adds.
pub fn readable(name: &[u8]) -> String {
    format!("{:#}", rustc_demangle::demangle(&String::from_utf8_lossy(name)))
}

/// What a program writes to: its bytes are what it begins with, and its name is what it is.
fn is_variable(section: &Section) -> bool {
    let writes = section.flags.1 & elf::SHF_WRITE.0 != 0;
    writes && !is_for_the_loader(section) && !section.name.starts_with(b".data.rel.ro")
}

fn is_for_the_loader(section: &Section) -> bool {
    section.name.starts_with(b".got")
}
