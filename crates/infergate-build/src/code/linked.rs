//! The units of base and head, side by side: which are the same.
//!
//! A function is known by its name, so the caller of a function that changed has not changed itself. Anything else is known by what it
//! holds and refers to: a constant has no name, and a name that ambiguous functions share does not say which one is meant.
//!
//! So each unit gets a hash of what it holds, and then, again and again, one of that and of the hashes of what it refers to. Once no more
//! units of both sides are told apart, units of the same hash are the same (partition refinement, as Hopcroft minimises automata by).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::thread;

use anyhow::{Result, ensure};
use object::{Object, ObjectSymbol, SymbolKind};

use super::names::{shared_name, stem};
use super::parse;
use super::units::{Kind, Target, Unit, Units, hash};

/// Runs both closures in parallel.
pub fn both<T: Send>(base: impl FnOnce() -> Result<T>, head: impl FnOnce() -> Result<T> + Send) -> Result<[T; 2]> {
    thread::scope(|scope| {
        let of_head = scope.spawn(head);
        let of_base = base();
        let of_head = of_head.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([of_base?, of_head?])
    })
}

/// The addresses of a program's functions, by symbol. Several functions can have one symbol.
pub type Addresses<'data> = HashMap<&'data [u8], Vec<u64>>;

/// The addresses of the functions of an executable, given its bytes.
///
/// # Errors
/// Another format than ELF of 64 bits, or no symbols.
pub fn addresses(program: &[u8]) -> Result<Addresses<'_>> {
    let file = parse(program)?;
    let mut found = Addresses::new();
    for symbol in file.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text) {
        found.entry(symbol.name_bytes()?).or_default().push(symbol.address());
    }
    ensure!(!found.is_empty(), "it does not name its functions");
    Ok(found)
}

/// The inputs of a program's linker.
pub struct Linked<'data> {
    pub units: Units<'data>,
    /// The name under which both sides know each unit; empty for one without.
    pub names: Vec<String>,
    /// A hash of what each unit holds and, after [`match_units`], of what it refers to: the same on both sides for the same unit.
    pub hashes: Vec<u64>,
    /// Its functions that the linker took, by name.
    pub functions: BTreeMap<String, Vec<usize>>,
    pub addresses: Addresses<'data>,
}

impl<'data> Linked<'data> {
    fn new(units: Units<'data>, addresses: Addresses<'data>, others: &HashSet<&[u8]>) -> Self {
        let names: Vec<String> = units.all.iter().map(|unit| shared_name(&unit.symbols, others)).collect();
        let own_hash = |(unit, name): (&Unit, &String)| {
            let is_named = matches!(unit.kind, Kind::Code | Kind::Variable);
            hash(&(unit.kind, unit.own_hash, is_named.then_some(name)))
        };
        let hashes = units.all.iter().zip(&names).map(own_hash).collect();
        let mut functions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, unit) in units.all.iter().enumerate() {
            if unit.kind == Kind::Code && unit.symbols.iter().any(|symbol| addresses.contains_key(symbol)) {
                functions.entry(names[number].clone()).or_default().push(number);
            }
        }
        Self { units, names, hashes, functions, addresses }
    }

    /// A hash of the name of each unit that is a function known by its name; `None` for the others.
    fn name_hashes(&self, ambiguous: &HashSet<String>) -> Vec<Option<u64>> {
        let is_known =
            |unit: &Unit, name: &String| unit.kind == Kind::Code && !name.is_empty() && !ambiguous.contains(name);
        let all = self.units.all.iter().zip(&self.names);
        all.map(|(unit, name)| is_known(unit, name).then(|| hash(name))).collect()
    }

    pub fn unit(&self, number: usize) -> &Unit<'data> {
        &self.units.all[number]
    }

    /// Where these functions begin, and others that share a symbol with them.
    pub fn places(&self, functions: &[usize]) -> BTreeSet<u64> {
        let symbols = functions.iter().flat_map(|function| &self.unit(*function).symbols);
        symbols.filter_map(|symbol| self.addresses.get(symbol)).flatten().copied().collect()
    }

    /// Hashes, in order, of what runs and is in no function of a name: code without one, and what runs before `main`.
    pub fn unnamed_hashes(&self) -> Vec<u64> {
        let is_unnamed = |unit: &usize| match self.unit(*unit).kind {
            Kind::Code => self.names[*unit].is_empty(),
            kind => kind == Kind::Initializer,
        };
        let mut found: Vec<u64> = (0..self.names.len()).filter(is_unnamed).map(|unit| self.hashes[unit]).collect();
        found.sort_unstable();
        found
    }
}

/// Hashes the units of both sides with what they refer to, until no more of them are told apart. Units of the same hash then match.
pub fn match_units<'data>(units: [Units<'data>; 2], addresses: [Addresses<'data>; 2]) -> [Linked<'data>; 2] {
    let stems = |units: &Units<'data>| -> HashSet<&'data [u8]> {
        units.all.iter().flat_map(|unit| &unit.symbols).map(|symbol| stem(symbol)).collect()
    };
    let [in_base, in_head] = [stems(&units[0]), stems(&units[1])];
    let ([base, head], [of_base, of_head]) = (units, addresses);
    let mut sides = [Linked::new(base, of_base, &in_head), Linked::new(head, of_head, &in_base)];
    let several = sides.iter().flat_map(|side| &side.functions).filter(|(_, units)| units.len() > 1);
    let ambiguous: HashSet<String> = several.map(|(name, _)| name.clone()).collect();
    let own_hashes = sides.each_ref().map(|side| side.hashes.clone());
    let name_hashes = sides.each_ref().map(|side| side.name_hashes(&ambiguous));
    let mut told_apart_before = 0;
    loop {
        let told_apart: HashSet<u64> = sides.iter().flat_map(|side| &side.hashes).copied().collect();
        if told_apart.len() == told_apart_before {
            return sides;
        }
        told_apart_before = told_apart.len();
        for (side, (own_hashes, name_hashes)) in sides.iter_mut().zip(own_hashes.iter().zip(&name_hashes)) {
            let of_target = |target: &Target| match target {
                Target::Unit(unit) => name_hashes[*unit].unwrap_or(side.hashes[*unit]),
                Target::Name(name) => hash(stem(name)),
            };
            let refined = side.units.all.iter().zip(own_hashes).map(|(unit, own_hash)| {
                let references =
                    unit.references.iter().map(|it| (it.offset, it.relocation, it.addend, of_target(&it.to)));
                hash(&(own_hash, references.collect::<Vec<_>>()))
            });
            side.hashes = refined.collect();
        }
    }
}
