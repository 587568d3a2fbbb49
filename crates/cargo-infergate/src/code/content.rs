//! What an address in an instruction means: which function, which variable, or which constant, by its bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use object::{SymbolKind, elf};

use super::functions::{self, Function, Reference};
use super::image::{Image, Pointer, Section};
use super::loaded::{LOCATION, location};

/// Constants refer to constants; no deeper.
const MAX_DEPTH: usize = 16;

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
    /// Variables, by address: size and name.
    variables: BTreeMap<u64, (u64, String)>,
    /// Tables of distances to other constants, by address: what a `match` with a text for each arm becomes.
    tables: HashMap<u64, Vec<u64>>,
    known: HashMap<u64, u64>,
}

/// A constant, as far as it is known where it ends.
pub struct Piece {
    /// Where it begins.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Of its bytes, and what pointers among them point to.
    pub hash: u64,
    /// It has a name, and so its end is known.
    pub is_named: bool,
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
        let mut variables = BTreeMap::new();
        for symbol in image.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Data && symbol.size > 0) {
            bounds.extend([symbol.address, symbol.address.saturating_add(symbol.size)]);
            variables.insert(symbol.address, (symbol.size, readable(symbol.name)));
        }
        let tables: HashMap<u64, Vec<u64>> =
            bounds.iter().filter_map(|address| Some((*address, distances(image, &bounds, *address)?))).collect();
        bounds.extend(tables.values().flatten());
        Self { image, functions, keys, ambiguous, bounds, variables, tables, known: HashMap::new() }
    }

    /// A hash of everything that `function` does and refers to; `None` where that is not understood.
    pub fn fingerprint(&mut self, function: &Function) -> Option<u64> {
        if function.is_broken {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        function.shape.hash(&mut hasher);
        for reference in &function.references {
            self.reference(*reference, function)?.hash(&mut hasher);
        }
        Some(hasher.finish())
    }

    /// All constants, by address.
    pub fn pieces(&mut self) -> Vec<Piece> {
        let is_constant = |section: &&Section| section.name.starts_with(b".rodata") || section.name.starts_with(b".data.rel.ro");
        let image = self.image;
        let mut found = Vec::new();
        for section in image.sections.iter().filter(is_constant) {
            let inside = self.bounds.range(section.address + 1..section.end()).copied();
            let starts: Vec<u64> = std::iter::once(section.address).chain(inside).collect();
            let ends = starts[1..].iter().copied().chain([section.end()]);
            for (start, end) in starts.iter().copied().zip(ends) {
                let hash = self.bytes(start, self.trimmed(start, end), MAX_DEPTH);
                found.push(Piece { start, end, hash, is_named: self.image.is_named(start) });
            }
        }
        found
    }

    /// Where a constant ends without the zeros behind it: padding, whose length goes by where it lies.
    fn trimmed(&self, start: u64, end: u64) -> u64 {
        const BYTES_OF_POINTER: u64 = 8;
        let bytes = self.image.bytes(start, end - start).unwrap_or_default();
        let last = bytes.iter().rposition(|byte| *byte != 0).map_or(start, |last| start + last as u64 + 1);
        let pointer = self.image.pointers.range(start..end).next_back();
        last.max(pointer.map_or(start, |(place, _)| place.saturating_add(BYTES_OF_POINTER).min(end)))
    }

    fn reference(&mut self, reference: Reference, function: &Function) -> Option<u64> {
        let Reference { address, bytes } = reference;
        if let Some(table) = self.jump_table(address, function).filter(|_| bytes == 0) {
            return Some(hash(&("jump table", table)));
        }
        let section = self.image.section(address)?;
        if bytes > 0 && !is_variable(section) && !is_for_the_loader(section) {
            return Some(self.bytes(address, address.checked_add(bytes)?.min(section.end()), MAX_DEPTH));
        }
        self.meaning(address, MAX_DEPTH)
    }

    /// What is at an address: a hash of its name, or of its bytes.
    fn meaning(&mut self, address: u64, depth: usize) -> Option<u64> {
        let section = self.image.section(address)?;
        if section.is_code() {
            return self.code(address, depth);
        }
        if is_for_the_loader(section)
            && let Some(pointer) = self.image.pointers.get(&address)
        {
            return Some(self.pointer(&pointer.clone(), depth));
        }
        if is_variable(section) {
            let variable = self.variables.range(..=address).next_back();
            let held = variable.filter(|(start, (size, _))| address - **start < *size);
            let named = held.map(|(start, (size, name))| (*start, *size, name.clone()));
            let Some((start, size, name)) = named else {
                let end = end(&self.bounds, section, address);
                return Some(hash(&("variable", section.name, self.bytes(address, end, depth))));
            };
            return Some(hash(&(
                "variable",
                name,
                address - start,
                self.bytes(start, start.saturating_add(size), depth),
            )));
        }
        if let Some(known) = self.known.get(&address) {
            return Some(*known);
        }
        let end = end(&self.bounds, section, address);
        // Where constants refer to each other in a ring, the one that was begun with stands for itself.
        self.known.insert(address, 0);
        let found = match self.tables.get(&address).cloned().filter(|_| depth > 0) {
            Some(table) => {
                let meanings: Vec<_> = table.iter().map(|target| self.meaning(*target, depth - 1)).collect();
                let rest = address.saturating_add(4 * table.len() as u64);
                // What the table leads to can begin within what was taken for the table.
                hash(&("table", meanings, self.bytes(rest, end.max(rest), depth)))
            }
            None => self.bytes(address, self.trimmed(address, end), depth),
        };
        self.known.insert(address, found);
        Some(found)
    }

    fn code(&mut self, address: u64, depth: usize) -> Option<u64> {
        let at = self.functions.partition_point(|function| function.address <= address).checked_sub(1)?;
        let function = &self.functions[at];
        if !function.holds(address) {
            let place = functions::stub(self.image, address)?;
            let pointer = self.image.pointers.get(&place)?.clone();
            return Some(self.pointer(&pointer, depth));
        }
        let key = &self.keys[at];
        let shape = self.ambiguous.contains(key).then_some(function.shape);
        Some(hash(&("function", key, address - function.address, shape)))
    }

    fn pointer(&mut self, pointer: &Pointer, depth: usize) -> u64 {
        match pointer {
            Pointer::Other(kind, name, addend) => hash(&("loader", kind, name, addend)),
            Pointer::To(address) if depth > 0 => {
                let meaning = self.meaning(*address, depth - 1);
                hash(&("pointer", meaning.map_or_else(|| self.beside(*address), |meaning| (meaning, 0))))
            }
            Pointer::To(_) => hash(&"deep"),
        }
    }

    /// An address without anything at it, by the section it ends.
    fn beside(&self, address: u64) -> (u64, u64) {
        let before = self.image.sections.iter().rev().find(|section| section.address <= address);
        before.map_or((0, address), |section| (hash(&section.name), address - section.end().min(address)))
    }

    /// A hash of the bytes from `address` to `end`, with what pointers among them point to in place of where. Of a panic's location
    /// neither file nor line counts.
    fn bytes(&mut self, address: u64, end: u64, depth: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        (end - address).hash(&mut hasher);
        let mut at = address;
        let pointers: Vec<(u64, Pointer)> =
            self.image.pointers.range(address..end).map(|(place, pointer)| (*place, pointer.clone())).collect();
        for (place, pointer) in pointers {
            if place < at {
                continue;
            }
            self.image.bytes(at, place - at).hash(&mut hasher);
            if place.saturating_add(LOCATION) <= end && location(self.image, place).is_some() {
                "location".hash(&mut hasher);
                at = place.saturating_add(LOCATION);
            } else {
                self.pointer(&pointer, depth).hash(&mut hasher);
                at = place.saturating_add(8).min(end);
            }
        }
        self.image.bytes(at, end - at).hash(&mut hasher);
        hasher.finish()
    }

    /// The places in `function` that a table at `address` leads to: distances from the table, four bytes each.
    fn jump_table(&self, address: u64, function: &Function) -> Option<Vec<u64>> {
        let section = self.image.section(address).filter(|section| function.jumps_by_table && !section.is_code())?;
        let targets = entries(self.image, address, end(&self.bounds, section, address))?;
        let table: Vec<u64> =
            targets.take_while(|target| function.holds(*target)).map(|target| target - function.address).collect();
        (!table.is_empty()).then_some(table)
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
