//! What addresses in instructions mean: which function, which variable, or which constant.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;

use object::{SymbolKind, elf};

use super::functions::{self, Function};
use super::image::{Image, Pointer, Section};
use super::loaded::location;

/// An executable's functions and constants.
pub struct Contents<'a, 'data> {
    pub image: &'a Image<'data>,
    pub functions: &'a [Function<'data>],
    /// Where constants begin and end.
    pub bounds: BTreeSet<u64>,
    /// Variables and constants that have a name, by address: size and name.
    pub named: BTreeMap<u64, (u64, String)>,
    /// Tables of distances to other constants, by address: what a `match` with a text for each arm becomes. Where one function takes
    /// a table's address and another reads it, it is compared by its bytes: the one that takes the address is named also where the
    /// table's texts merely moved. A process that reads it has run that one before, so its case is never called layout by mistake.
    pub tables: HashMap<u64, Vec<u64>>,
}

impl<'a, 'data> Contents<'a, 'data> {
    pub fn new(image: &'a Image<'data>, functions: &'a [Function<'data>]) -> Self {
        let mut bounds: BTreeSet<u64> = functions::taken(image, functions).collect();
        let mut named = BTreeMap::new();
        for symbol in image.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Data && symbol.size > 0) {
            bounds.extend([symbol.address, symbol.address.saturating_add(symbol.size)]);
            named.insert(symbol.address, (symbol.size, functions::readable(symbol.name)));
        }
        // Else numbers that happen to lead somewhere would be taken for a table.
        let readers = functions.iter().filter(|function| function.reads_distances);
        let read = readers.flat_map(|function| &function.references).filter(|reference| reference.bytes == 0);
        let tables: HashMap<u64, Vec<u64>> = read
            .filter_map(|reference| Some((reference.address, distances(image, &bounds, reference.address)?)))
            .collect();
        bounds.extend(tables.values().flatten());
        Self { image, functions, bounds, named, tables }
    }

    /// The object of a name that an address lies in: where it begins, its size, its name.
    pub fn object(&self, address: u64) -> Option<(u64, u64, &str)> {
        let (start, (size, name)) = self.named.range(..=address).next_back()?;
        (address - start < *size).then_some((*start, *size, name))
    }

    /// The object of a name that ends at an address, as in a loop that counts down.
    pub fn object_before(&self, address: u64) -> Option<(u64, &str)> {
        let (start, (size, name)) = self.named.range(..address).next_back()?;
        (address - start == *size).then_some((*start, name))
    }

    /// Whether a panic's location begins at an address. It is used as a whole: somebody refers to its beginning.
    pub fn is_location(&self, address: u64) -> bool {
        self.bounds.contains(&address) && location(self.image, address).is_some()
    }

    /// Which function an address of code lies in; of a stub of the linker, what it leads to.
    pub fn code(&self, address: u64) -> Option<Code<'a, 'data>> {
        let at = self.functions.partition_point(|function| function.address <= address).checked_sub(1);
        if let Some(at) = at.filter(|at| self.functions[*at].holds(address)) {
            return Some(Code::Function(&self.functions[at]));
        }
        if let Some(place) = functions::stub(self.image, address) {
            return Some(Code::Stub(self.image.pointers.get(&place)?));
        }
        let at = self.image.symbols.partition_point(|symbol| symbol.address < address);
        let symbol = self.image.symbols.get(at).filter(|symbol| symbol.address == address)?;
        (symbol.kind == SymbolKind::Text).then_some(Code::Open(symbol.name))
    }

    /// The longest that what begins at `address` can be, bytes.
    pub fn length(&self, section: &Section, address: u64) -> u64 {
        end(&self.bounds, section, address) - address
    }

    /// What functions that begin at these addresses refer to.
    pub fn taken_by(&self, functions: impl Iterator<Item = u64>) -> HashSet<u64> {
        let at = |address| self.functions.partition_point(|function| function.address < address);
        let functions = functions.filter_map(|address| self.functions.get(at(address)));
        functions.flat_map(|function| &function.references).map(|reference| reference.address).collect()
    }

    /// Whether a constant ends where it seems to: it is a text, or a panic's location.
    fn is_whole(&self, from: u64, to: u64) -> bool {
        let bytes = to.checked_sub(from).and_then(|bytes| self.image.bytes(from, bytes));
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).map(|text| text.trim_end_matches('\0'));
        let is_printed = |letter: char| !letter.is_control() || letter.is_whitespace();
        self.is_location(from) || text.is_some_and(|text| text.chars().all(is_printed))
    }

    /// Where constants begin near the one that begins at `address`, and that may be one with it: some before, and its end. How many is not
    /// known; what has a name and what is whole end the search.
    pub fn beside(&self, address: u64) -> Vec<u64> {
        const BEFORE: usize = 8;
        let Some(section) = self.image.section(address) else { return Vec::new() };
        let mut end = address.saturating_add(self.length(section, address));
        let mut found = vec![end];
        for bound in self.bounds.range(section.address..=address).rev().take(BEFORE) {
            if self.object(*bound).is_some() || self.is_whole(*bound, end) {
                break;
            }
            found.push(*bound);
            end = *bound;
        }
        // One that is whole has nothing beside it.
        if found.len() == 1 { Vec::new() } else { found }
    }

    /// An address without anything at it, by the section it ends.
    pub fn outside(&self, address: u64) -> (u64, u64) {
        let before = self.image.sections.iter().rev().find(|section| section.address <= address);
        before.map_or((0, address), |section| (hash(&section.name), address - section.end().min(address)))
    }

    /// What a jump table of `function` at `address` leads to: distances from the table, four bytes each. `None` where its first entry
    /// leads elsewhere. What lies behind its last entry is read as entries, too, since where it ends is not known.
    pub fn jump_table(&self, address: u64, function: &Function) -> Option<Vec<u64>> {
        let section = self.image.section(address).filter(|section| function.jumps_by_table && !section.is_code())?;
        let mut targets = entries(self.image, address, end(&self.bounds, section, address))?;
        let first = targets.next().filter(|target| function.holds(*target))?;
        Some(iter::once(first).chain(targets).collect())
    }
}

/// What an address of code means.
pub enum Code<'a, 'data> {
    Function(&'a Function<'data>),
    /// What the loader writes where the stub jumps to.
    Stub(&'a Pointer),
    /// One of a name whose size nobody says, as of the system's objects that each program begins with. It is compared among the code outside
    /// functions.
    Open(&'data [u8]),
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

/// What a program writes to: its bytes are what it begins with, and its name is what it is.
pub fn is_variable(section: &Section) -> bool {
    let writes = section.flags.1 & elf::SHF_WRITE.0 != 0;
    writes && !is_for_the_loader(section) && !section.name.starts_with(b".data.rel.ro")
}

pub fn is_for_the_loader(section: &Section) -> bool {
    section.name.starts_with(b".got")
}
