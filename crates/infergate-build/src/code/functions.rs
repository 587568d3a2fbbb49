//! The functions of an executable for x86-64: their instructions without the addresses in them, and what those addresses are of.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::SymbolKind;

use super::image::{Image, Pointer, Symbol};

/// One function, or several of the same instructions that the linker laid over each other.
pub struct Function<'data> {
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Its symbols, mangled, in order.
    pub symbols: Vec<&'data [u8]>,
    /// What it is called in two executables, see [`of_both`].
    pub key: String,
    /// A hash of its instructions, addresses masked, and jumps within it relative to its beginning.
    pub shape: u64,
    /// What the masked addresses are, in order.
    pub references: Vec<Reference>,
    /// Whether it jumps to an address that it computes, as a `match` does that became a table.
    pub jumps_by_table: bool,
    /// Whether it reads numbers of four bytes, with a sign, at an address that it computes, as from a table of distances.
    pub reads_distances: bool,
    /// Bytes that are no instruction: nothing is known of it then.
    pub is_broken: bool,
}

/// An address in an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    pub address: u64,
    /// Bytes that are read or written there; 0 where the address itself is taken, or jumped to.
    pub bytes: u64,
}

impl Function<'_> {
    /// Whether an address lies in it.
    pub fn holds(&self, address: u64) -> bool {
        (self.address..self.address.saturating_add(self.size)).contains(&address)
    }
}

/// All functions that have a name, by address.
pub fn all<'data>(image: &Image<'data>) -> Vec<Function<'data>> {
    let mut by_address: BTreeMap<u64, Vec<Symbol<'data>>> = BTreeMap::new();
    for symbol in image.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Text && symbol.size > 0) {
        by_address.entry(symbol.address).or_default().push(*symbol);
    }
    let of = |symbols: Vec<Symbol<'data>>| {
        let (address, size) = (symbols[0].address, symbols.iter().map(|symbol| symbol.size).max()?);
        let is_code = image.section(address)?.is_code();
        let bytes = image.bytes(address, size).filter(|_| is_code)?;
        Some(read(address, bytes, symbols.iter().map(|symbol| symbol.name).collect()))
    };
    by_address.into_values().filter_map(of).collect()
}

/// All functions of two executables, by address. The key of each is a name with its hash where both have that, else its name without.
pub fn of_both<'b, 'h>(base: &Image<'b>, head: &Image<'h>) -> (Vec<Function<'b>>, Vec<Function<'h>>) {
    let (mut was, mut is) = (all(base), all(head));
    let (in_base, in_head) = (names(&was), names(&is));
    set_keys(&mut was, &in_head);
    set_keys(&mut is, &in_base);
    (was, is)
}

fn names<'data>(functions: &[Function<'data>]) -> HashSet<&'data [u8]> {
    functions.iter().flat_map(|function| &function.symbols).map(|symbol| stem(symbol)).collect()
}

fn set_keys(functions: &mut [Function], others: &HashSet<&[u8]>) {
    for function in functions {
        let mut names = function.symbols.iter().map(|symbol| stem(symbol));
        let first = names.clone().next().unwrap_or_default();
        let shared = names.find(|name| others.contains(name));
        function.key = shared.map_or_else(|| readable(first), |name| String::from_utf8_lossy(name).into_owned());
    }
}

/// Functions by their keys. Several have one key where their names differ in hashes alone.
pub fn by_key<'f, 'data>(functions: &'f [Function<'data>]) -> BTreeMap<&'f str, Vec<&'f Function<'data>>> {
    let mut found: BTreeMap<&str, Vec<&Function>> = BTreeMap::new();
    for function in functions {
        found.entry(&function.key).or_default().push(function);
    }
    found
}

/// The addresses at which something begins: those that code takes, and those that data points to. A load of known size may be from the
/// middle of a constant.
pub fn taken(image: &Image, functions: &[Function]) -> impl Iterator<Item = u64> {
    let of_code = functions.iter().flat_map(|function| &function.references).filter(|reference| reference.bytes == 0);
    let of_data = image.pointers.values().filter_map(|pointer| match pointer {
        Pointer::To(address) => Some(*address),
        Pointer::Other(..) => None,
    });
    of_code.map(|reference| reference.address).chain(of_data)
}

/// The name of Rust that a symbol has: where whole programs are optimised, LLVM numbers the copies of one function, anew in each build,
/// as in `_ZN...17h0123456789abcdefE.2041` and `_R....llvm.77`. Names of other languages keep theirs: two files of C may each have
/// a function of one name.
fn stem(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let stem = name[..name.len() - digits].strip_suffix(b".").filter(|_| digits > 0);
    let stem = stem.map(|stem| stem.strip_suffix(b".llvm").unwrap_or(stem));
    // The hash that ends a name of the older kind.
    let is_hashed =
        |stem: &[u8]| stem.len() > 20 && stem.ends_with(b"E") && stem[stem.len() - 20..].starts_with(b"17h");
    stem.filter(|stem| stem.starts_with(b"_R") || is_hashed(stem)).unwrap_or(name)
}

/// Code that belongs to no function of a name, by its instructions without addresses: of each stretch between two functions what
/// is left without the padding at its ends, in the order of the hashes. Stubs of the linker are left out, since what they lead to is
/// compared where they are called.
pub fn outside(image: &Image, functions: &[Function]) -> Vec<u64> {
    let mut found = Vec::new();
    for section in image.sections.iter().filter(|section| section.is_code() && !section.name.starts_with(b".plt")) {
        let first = functions.partition_point(|function| function.address < section.address);
        let mut at = section.address;
        let inside = functions[first..].iter().take_while(|function| function.address < section.end());
        for (start, end) in inside.map(|function| (function.address, function.address.saturating_add(function.size))) {
            found.extend(stretch(image, at, start));
            at = at.max(end);
        }
        found.extend(stretch(image, at, section.end()));
    }
    found.sort_unstable();
    found
}

fn stretch(image: &Image, from: u64, end: u64) -> Option<u64> {
    let bytes = image.bytes(from, end.checked_sub(from)?)?;
    let decoder = Decoder::with_ip(64, bytes, from, DecoderOptions::NONE);
    let is_padding = |instruction: &Instruction| matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
    let work: Vec<Instruction> = decoder.into_iter().filter(|instruction| !is_padding(instruction)).collect();
    let (first, last) = (work.first()?.ip(), work.last()?.next_ip());
    let bytes = image.bytes(first, last.checked_sub(first)?)?;
    Some(read(first, bytes, Vec::new()).shape)
}

fn read<'data>(address: u64, bytes: &[u8], symbols: Vec<&'data [u8]>) -> Function<'data> {
    let mut function = Function {
        address,
        size: bytes.len() as u64,
        symbols,
        key: String::new(),
        shape: 0,
        references: Vec::new(),
        jumps_by_table: false,
        reads_distances: false,
        is_broken: false,
    };
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut shape = DefaultHasher::new();
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        let from = decoder.position();
        decoder.decode_out(&mut instruction);
        let mut code = [0_u8; 16];
        let length = decoder.position() - from;
        if instruction.is_invalid() || length > code.len() {
            function.is_broken = true;
            break;
        }
        code[..length].copy_from_slice(&bytes[from..decoder.position()]);
        let constants = decoder.get_constant_offsets(&instruction);
        let mut mask = |offset: usize, size: usize| code[offset..offset + size].fill(0);
        if instruction.is_ip_rel_memory_operand() {
            mask(constants.displacement_offset(), constants.displacement_size());
            let is_address = instruction.memory_size().size() == 0;
            let bytes = if is_address { 0 } else { instruction.memory_size().size() as u64 };
            function.references.push(Reference { address: instruction.ip_rel_memory_address(), bytes });
        }
        if let Some(target) = branch_target(&instruction) {
            mask(constants.immediate_offset(), constants.immediate_size());
            if function.holds(target) {
                (target - address).hash(&mut shape);
            } else {
                function.references.push(Reference { address: target, bytes: 0 });
            }
        }
        function.jumps_by_table |= instruction.flow_control() == FlowControl::IndirectBranch;
        function.reads_distances |= instruction.mnemonic() == Mnemonic::Movsxd
            && instruction.op1_kind() == OpKind::Memory
            && !instruction.is_ip_rel_memory_operand();
        code[..length].hash(&mut shape);
    }
    function.shape = shape.finish();
    function
}

fn branch_target(instruction: &Instruction) -> Option<u64> {
    let is_branch =
        matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    is_branch.then(|| instruction.near_branch_target())
}

/// What a stub of the linker jumps to by: the place where the loader wrote an address. `None` for other code.
pub fn stub(image: &Image, address: u64) -> Option<u64> {
    const MOST_BYTES: u64 = 16;
    let section = image.section(address).filter(|section| section.name.starts_with(b".plt"))?;
    let bytes = image.bytes(address, MOST_BYTES.min(section.end() - address))?;
    let decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let jump = decoder.into_iter().find(|instruction| instruction.flow_control() == FlowControl::IndirectBranch)?;
    jump.is_ip_rel_memory_operand().then(|| jump.ip_rel_memory_address())
}

/// A name without the hashes of crates and types that the compiler adds.
pub fn readable(name: &[u8]) -> String {
    format!("{:#}", rustc_demangle::demangle(&String::from_utf8_lossy(name)))
}
