//! The order of functions and constants of both sides: what is the same comes first on both.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::code::linked::Linked;
use crate::code::units::{Kind, SectionId};

const LINE_BYTES: u64 = 64;
/// Functions start at multiples of this many bytes.
const FUNCTION_ALIGN: u64 = 16;
const PAGE_BYTES: u64 = 4096;

/// A section of an object file, which the linker can place by itself.
#[derive(Debug, Clone)]
pub struct Section<'s> {
    pub id: SectionId,
    /// Names of its functions, as both sides know them; empty for constants.
    names: Vec<&'s str>,
    /// Hashes of its units.
    hashes: Vec<u64>,
    bytes: u64,
    align: u64,
}

/// The sections of a side that the linker neither merges nor sorts.
pub fn sections<'s>(side: &'s Linked) -> Vec<Section<'s>> {
    let mut found = BTreeMap::<SectionId, Section>::new();
    for ((unit, name), hash) in side.units.all.iter().zip(&side.names).zip(&side.hashes) {
        let is_function = unit.kind == Kind::Code;
        if is_function || unit.kind == (Kind::Constant { is_merged: false }) {
            let (id, align) = (unit.section, unit.align);
            let empty = || Section { id, names: Vec::new(), hashes: Vec::new(), bytes: 0, align };
            let section = found.entry(id).or_insert_with(empty);
            section.names.extend(is_function.then_some(&**name));
            section.hashes.push(if is_function { unit.own_hash } else { *hash });
            section.bytes += unit.bytes;
        }
    }
    let mut found: Vec<Section> = found.into_values().collect();
    found.sort_by(|a, b| (&a.names, &a.hashes).cmp(&(&b.names, &b.hashes)));
    found
}

/// Pairs of sections with the same key, in the order of base, and what is left of each side.
fn pair_up<'s, K: Ord>(
    [base, head]: [Vec<Section<'s>>; 2],
    key: impl Fn(&Section<'s>) -> K,
) -> (Vec<[Section<'s>; 2]>, [Vec<Section<'s>>; 2]) {
    let mut there: BTreeMap<K, VecDeque<Section>> = BTreeMap::new();
    for section in head {
        there.entry(key(&section)).or_default().push_back(section);
    }
    let (mut pairs, mut left) = (Vec::new(), Vec::new());
    for section in base {
        match there.get_mut(&key(&section)).and_then(VecDeque::pop_front) {
            Some(other) => pairs.push([section, other]),
            None => left.push(section),
        }
    }
    (pairs, [left, there.into_values().flatten().collect()])
}

/// How both sides are laid out.
pub struct Layout<'s> {
    /// Constants that are the same.
    constants: Vec<[Section<'s>; 2]>,
    /// Functions with the same instructions.
    same: Vec<[Section<'s>; 2]>,
    /// Sections that changed, or that one side lacks.
    changed: Vec<[Option<Section<'s>>; 2]>,
}

impl<'s> Layout<'s> {
    /// From the sections of base and of head.
    pub fn of(sides: [Vec<Section<'s>>; 2]) -> Self {
        let (same, left) = pair_up(sides, |section| (section.names.clone(), section.hashes.clone()));
        let (constants, same) = same.into_iter().partition(|[base, _]| base.names.is_empty());
        let (changed, [removed, new]) = pair_up(left, |section| section.names.clone());
        let changed = changed.into_iter().map(|both| both.map(Some));
        let removed = removed.into_iter().map(|section| [Some(section), None]);
        let new = new.into_iter().map(|section| [None, Some(section)]);
        Self { constants, same, changed: changed.chain(removed).chain(new).collect() }
    }

    /// The order of base, which is side 0, or of head:
    /// 1. what is the same: constants, and functions shuffled by `seed`;
    /// 2. the filler, which sets the placement;
    /// 3. what changed, by name, each function padded to the longer side.
    pub fn order(&self, side: usize, seed: u64, placement: usize) -> Order {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut same: Vec<&[Section; 2]> = self.same.iter().collect();
        random.shuffle(&mut same);
        let mut order = Order::default();
        let same = self.constants.iter().chain(same);
        order.symbols.extend(same.map(|both| symbol(both[side].id)));
        let bytes = FUNCTION_ALIGN * placement as u64 + LINE_BYTES * random.u64(1..PAGE_BYTES / LINE_BYTES);
        order.pad(Pad { name: "infergate_filler".to_owned(), bytes, align: PAGE_BYTES });
        for (at, both) in self.changed.iter().enumerate() {
            let (own, other) = (both[side].as_ref(), both[1 - side].as_ref());
            order.symbols.extend(own.map(|section| symbol(section.id)));
            let is_function = own.or(other).is_some_and(|section| !section.names.is_empty());
            let bytes = |section: Option<&Section>| section.map_or(0, |section| section.bytes);
            let missing = bytes(other).saturating_sub(bytes(own));
            if is_function && missing > 0 {
                // In place of a function that is missing, padding starts as that would.
                let align = other.filter(|_| own.is_none()).map_or(1, |other| other.align.min(FUNCTION_ALIGN));
                order.pad(Pad { name: format!("infergate_pad_{at}"), bytes: missing, align });
            }
        }
        order
    }

    /// How many functions of base have the same place in head, by the addresses of symbols in both programs; and how many base has.
    pub fn alike(&self, [base, head]: [&HashMap<&[u8], u64>; 2]) -> (usize, usize) {
        let place = |all: &HashMap<&[u8], u64>, section: &Section| all.get(symbol(section.id).as_bytes()).copied();
        let is_alike = |both: &&[Section; 2]| place(base, &both[0]) == place(head, &both[1]);
        let changed =
            self.changed.iter().filter_map(|both| both[0].as_ref()).filter(|section| !section.names.is_empty()).count();
        (self.same.iter().filter(is_alike).count(), self.same.len() + changed)
    }
}

/// The symbol that the linker places a section by. Names would not do: functions share them, and constants have none.
pub fn symbol((object, section): SectionId) -> String {
    format!("infergate_{object}_{section}")
}

/// The order of one side, for the linker.
#[derive(Default)]
pub struct Order {
    /// First to last. Those of [`pads`](Self::pads) are among them.
    pub symbols: Vec<String>,
    /// Bytes that are never run.
    pub pads: Vec<Pad>,
}

/// Padding: as many bytes as the other side's function has more.
pub struct Pad {
    pub name: String,
    pub bytes: u64,
    pub align: u64,
}

impl Order {
    fn pad(&mut self, pad: Pad) {
        self.symbols.push(pad.name.clone());
        self.pads.push(pad);
    }
}
