//! JSON of others: looked at before a value is made of it. Nothing twice, nothing endless, and a limit on the memory that the
//! value can take.
//!
//! A list of `{}` has three bytes an entry, and an entry that is kept a hundred. So the text is walked over once, keeping
//! nothing, and every value in it is charged with the most that any type of ours takes for it. What is charged with more than
//! seven times the text and 15 MiB is refused: with the text itself, which is dropped last, no text takes more than eight
//! times its length and 16 MiB.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

/// What a value may take: so many times its text,
const TIMES: u64 = 7;
/// and so much beside it.
const BESIDE_BYTES: u64 = 15 << 20;

/// A number, a truth value or a null in a list. Lists grow by doubling, and 16 bytes are the most that one takes.
const NUMBER_BYTES: u64 = 32;
/// A text in a list, without its letters.
const TEXT_BYTES: u64 = 64;
/// A list in a list. The first entry makes room for four.
const LIST_BYTES: u64 = 112;
/// An object in a list.
const OBJECT_BYTES: u64 = 768;
/// A list, a text or an object in a field: it lies in its object, but for what it points to.
const FIELD_BYTES: u64 = 48;
/// A key of an object, which may be a map: a B-tree's nodes are half empty.
const KEY_BYTES: u64 = 40;
/// A key beyond those that any of our objects with fixed keys has.
const MAP_KEY_BYTES: u64 = 300;
const FIXED_KEYS: usize = 48;
/// Any value in an object whose form is told by one of its keys: serde keeps all of it until that key comes.
const KEPT_BYTES: u64 = 160;
const TELLING_KEYS: [&str; 2] = ["kind", "op"];

/// What is refused before memory is thought of.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The longest text, bytes.
    pub text_bytes: usize,
    /// The longest list, entries.
    pub list_entries: usize,
    /// The most keys of an object.
    pub object_keys: usize,
}

/// A value of `text`, which obeys `rules`.
///
/// # Errors
/// The first thing in it that does not, a value that would take too much memory, or what is no `T`; each with line and column.
pub fn read<T: DeserializeOwned>(text: &str, rules: Rules) -> serde_json::Result<T> {
    check(text, rules)?;
    serde_json::from_str(text)
}

/// Walks over all of `text`: JSON, nested at most 128 deep, no key twice in an object, within `rules` and the limit on memory.
///
/// # Errors
/// The first of these that does not hold, with line and column.
pub fn check(text: &str, rules: Rules) -> serde_json::Result<()> {
    walk(text, rules, TIMES.saturating_mul(text.len() as u64).saturating_add(BESIDE_BYTES)).map(drop)
}

/// The most memory that a value of `text` takes, whatever it is. A test asks each format whether that is so.
///
/// # Errors
/// As [`check`], without the limit on memory.
pub fn most_bytes(text: &str, rules: Rules) -> serde_json::Result<u64> {
    walk(text, rules, u64::MAX)
}

fn walk(text: &str, rules: Rules, most: u64) -> serde_json::Result<u64> {
    let charged = Cell::new(0);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let walk = Walk { rules, charged: &charged, most, in_list: false };
    walk.deserialize(&mut deserializer).and_then(|_| deserializer.end())?;
    Ok(charged.get())
}

/// Walks over any value and keeps nothing of it. Gives how many values it is, with all inside it.
#[derive(Clone, Copy)]
struct Walk<'a> {
    rules: Rules,
    charged: &'a Cell<u64>,
    most: u64,
    in_list: bool,
}

impl Walk<'_> {
    fn charge<E: Error>(&self, in_list: u64, in_field: u64) -> Result<u64, E> {
        self.charge_all(if self.in_list { in_list } else { in_field })
    }

    fn charge_all<E: Error>(&self, bytes: u64) -> Result<u64, E> {
        let charged = self.charged.get().saturating_add(bytes);
        self.charged.set(charged);
        if charged > self.most {
            return Err(E::custom(
                "it holds more small values than any file or answer of ours, and would fill the memory",
            ));
        }
        Ok(1)
    }

    fn text<E: Error>(&self, text: &str) -> Result<(), E> {
        let (bytes, most) = (text.len(), self.rules.text_bytes);
        if bytes > most {
            return Err(E::custom(format_args!("a text of {bytes} bytes is too long, at most {most} are read")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        self.charge(NUMBER_BYTES, 0)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<u64, E> {
        self.charge(NUMBER_BYTES, 0)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<u64, E> {
        self.charge(NUMBER_BYTES, 0)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<u64, E> {
        self.charge(NUMBER_BYTES, 0)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<u64, E> {
        self.charge(NUMBER_BYTES, 0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        self.text(text)?;
        self.charge_all::<E>(text.len() as u64)?;
        self.charge(TEXT_BYTES, FIELD_BYTES)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut values = self.charge(LIST_BYTES, FIELD_BYTES)?;
        let (mut entries, entry) = (0, Self { in_list: true, ..self });
        while let Some(inside) = list.next_element_seed(entry)? {
            (entries, values) = (entries + 1, values + inside);
            let most = self.rules.list_entries;
            if entries > most {
                return Err(A::Error::custom(format_args!("a list is too long, at most {most} entries are read")));
            }
        }
        Ok(values)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<u64, A::Error> {
        let mut values = self.charge(OBJECT_BYTES, FIELD_BYTES)?;
        let mut seen = HashSet::new();
        while let Some(key) = object.next_key::<String>()? {
            self.text::<A::Error>(&key)?;
            let most = self.rules.object_keys;
            if seen.len() == most {
                return Err(A::Error::custom(format_args!("an object has too many keys, at most {most} are read")));
            }
            self.charge_all::<A::Error>(if seen.len() < FIXED_KEYS { KEY_BYTES } else { MAP_KEY_BYTES })?;
            if let Some(key) = seen.replace(key) {
                return Err(A::Error::custom(format_args!("key '{key}' is there twice")));
            }
            values += object.next_value_seed(Self { in_list: false, ..self })? + 1;
        }
        if TELLING_KEYS.iter().any(|key| seen.contains(*key)) {
            self.charge_all::<A::Error>(KEPT_BYTES.saturating_mul(values))?;
        }
        Ok(values)
    }
}

/// Whether no text in the JSON `text` has a control character, written as it is or as an escape.
pub fn is_plain(text: &str) -> bool {
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let is_control = match letter {
            '\\' => match rest.next() {
                Some('b' | 'f' | 'n' | 'r' | 't') => true,
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).is_some_and(char::is_control)
                }
                _ => false,
            },
            letter => letter.is_control(),
        };
        if is_control {
            return false;
        }
    }
    true
}
