//! The units of base and head, side by side: which are the same.
//!
//! A function is known by its name, so that what calls a function that changed has not changed itself. Everything else is what it
//! holds and refers to: a constant has no name, and of several functions of one name neither says which is meant. What that comes to is
//! found for both sides at once by refining: first what each unit holds, then with what those hold that it refers to, until no more units
//! are told apart.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use anyhow::{Context, Result};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol, SymbolKind};

use super::names::{key, stem};
use super::units::{Kind, Target, Unit, Units};

/// Where the functions of a program begin, by their symbols: at several places where it has several of one name.
pub type Addresses<'data> = HashMap<&'data [u8], Vec<u64>>;

/// Of an executable, by its bytes.
///
/// # Errors
/// Another format than ELF of 64 bits.
pub fn addresses(program: &[u8]) -> Result<Addresses<'_>> {
    let file = ElfFile64::<LittleEndian>::parse(program).context("it is no ELF executable of 64 bits")?;
    let mut found = Addresses::new();
    for symbol in file.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text) {
        found.entry(symbol.name_bytes()?).or_default().push(symbol.address());
    }
    Ok(found)
}

/// One side.
pub struct Side<'data> {
    pub units: Units<'data>,
    /// What each unit is called in both sides; nothing for one without a name.
    pub keys: Vec<String>,
    /// What each holds and refers to: equal in both sides for what is the same.
    pub contents: Vec<u64>,
    /// Its functions that the linker took, by key.
    pub functions: BTreeMap<String, Vec<usize>>,
    pub addresses: Addresses<'data>,
}

impl<'data> Side<'data> {
    fn new(units: Units<'data>, addresses: Addresses<'data>, others: &HashSet<&[u8]>) -> Self {
        let keys: Vec<String> = units.all.iter().map(|unit| key(&unit.symbols, others)).collect();
        let mut functions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, unit) in units.all.iter().enumerate() {
            if unit.kind == Kind::Code && unit.symbols.iter().any(|symbol| addresses.contains_key(symbol)) {
                functions.entry(keys[number].clone()).or_default().push(number);
            }
        }
        Self { contents: Vec::new(), units, keys, functions, addresses }
    }

    pub fn unit(&self, number: usize) -> &Unit<'data> {
        &self.units.all[number]
    }

    /// Where a function begins that has no namesake.
    pub fn address(&self, function: usize) -> Option<u64> {
        let places = self.unit(function).symbols.iter().find_map(|symbol| self.addresses.get(symbol))?;
        if let [only] = places[..] { Some(only) } else { None }
    }

    /// Content of what does something and is in no function of a name, in order.
    pub fn outside(&self) -> Vec<u64> {
        let is_outside = |unit: &usize| match self.unit(*unit).kind {
            Kind::Code => self.keys[*unit].is_empty(),
            kind => kind == Kind::Start,
        };
        let mut found: Vec<u64> = (0..self.keys.len()).filter(is_outside).map(|unit| self.contents[unit]).collect();
        found.sort_unstable();
        found
    }
}

/// Both, whose units are compared.
pub struct Sides<'data>(pub [Side<'data>; 2]);

impl<'data> Sides<'data> {
    pub fn new(units: [Units<'data>; 2], addresses: [Addresses<'data>; 2]) -> Self {
        let stems = |units: &Units<'data>| -> HashSet<&'data [u8]> {
            units.all.iter().flat_map(|unit| &unit.symbols).map(|symbol| stem(symbol)).collect()
        };
        let [in_base, in_head] = [stems(&units[0]), stems(&units[1])];
        let ([base, head], [of_base, of_head]) = (units, addresses);
        let mut sides = Self([Side::new(base, of_base, &in_head), Side::new(head, of_head, &in_base)]);
        sides.refine();
        sides
    }

    fn refine(&mut self) {
        let several: HashSet<String> = self
            .0
            .iter()
            .flat_map(|side| &side.functions)
            .filter(|(_, units)| units.len() > 1)
            .map(|(key, _)| key.clone())
            .collect();
        let own = |side: &Side, number: usize| {
            let (unit, key) = (side.unit(number), &side.keys[number]);
            let is_named = matches!(unit.kind, Kind::Code | Kind::Variable);
            hash(&(unit.kind, unit.shape, is_named.then_some(key)))
        };
        let is_known = |side: &Side, number: usize| {
            let key = &side.keys[number];
            side.unit(number).kind == Kind::Code && !key.is_empty() && !several.contains(key)
        };
        let own: [Vec<u64>; 2] =
            self.0.each_ref().map(|side| (0..side.keys.len()).map(|unit| own(side, unit)).collect());
        let known: [Vec<Option<u64>>; 2] = self.0.each_ref().map(|side| {
            (0..side.keys.len()).map(|unit| is_known(side, unit).then(|| hash(&side.keys[unit]))).collect()
        });
        for (side, own) in self.0.iter_mut().zip(&own) {
            side.contents.clone_from(own);
        }
        let mut told_apart = 0;
        loop {
            let distinct: HashSet<u64> = self.0.iter().flat_map(|side| &side.contents).copied().collect();
            if distinct.len() == told_apart {
                return;
            }
            told_apart = distinct.len();
            for (at, side) in self.0.iter_mut().enumerate() {
                let of = |target: &Target| match target {
                    Target::Unit(unit) => known[at][*unit].unwrap_or(side.contents[*unit]),
                    Target::Name(name) => hash(stem(name)),
                };
                let refined = side.units.all.iter().zip(&own[at]).map(|(unit, own)| {
                    let mut hasher = DefaultHasher::new();
                    own.hash(&mut hasher);
                    unit.references.iter().for_each(|reference| (reference.how, of(&reference.to)).hash(&mut hasher));
                    hasher.finish()
                });
                side.contents = refined.collect();
            }
        }
    }
}

fn hash(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
