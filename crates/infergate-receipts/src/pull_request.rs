//! The door for what a pull request's job uploads: the only file that is not the user's own.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use infergate_core::receipt::limits::{MAX_NUMBER, MAX_RATE};
use infergate_core::text_file::read_bytes;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{PairedReceipt, parse};

/// A longer file is not read. `gate` reduces a receipt to the medians of its blocks before it becomes longer.
pub const MOST_UPLOADED_BYTES: usize = 4 << 20;
/// The longest name or sentence.
const MOST_TEXT_BYTES: usize = 1 << 16;

/// Reads the paired receipt of a pull request's own run.
pub fn read_uploaded(path: &Path) -> Result<PairedReceipt> {
    let bytes = read_bytes(path, MOST_UPLOADED_BYTES as u64)?;
    parse_uploaded(&bytes).with_context(|| format!("{}: not a usable file", path.display()))
}

/// As [`read_uploaded`], of the file's bytes.
pub fn parse_uploaded(bytes: &[u8]) -> Result<PairedReceipt> {
    serde_json::from_slice::<Bounded>(bytes).context("not JSON that a gate writes")?;
    parse(std::str::from_utf8(bytes)?)
}

/// Any JSON whose numbers and texts are as small as a run's. Nothing of it is kept.
struct Bounded;

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Bounded {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self, E> {
        self.visit_u64(number.unsigned_abs())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self, E> {
        if number <= MAX_NUMBER { Ok(self) } else { Err(E::custom(format_args!("{number} is beyond {MAX_NUMBER}"))) }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self, E> {
        if number.abs() <= MAX_RATE {
            Ok(self)
        } else {
            Err(E::custom(format_args!("{number} is beyond {MAX_RATE:e}")))
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self, E> {
        let bytes = text.len();
        if bytes <= MOST_TEXT_BYTES { Ok(self) } else { Err(E::custom(format_args!("a text of {bytes} bytes"))) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}
