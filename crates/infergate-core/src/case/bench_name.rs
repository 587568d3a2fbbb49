//! The name of a bench, cheap to copy: [`BenchName`].

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};

use crate::sha256;

/// Longest name, bytes. A receipt is someone else's file.
const MAX_NAME_BYTES: usize = 200;
/// What is kept of a longer one.
const CUT_NAME_BYTES: usize = 100;

/// A bench's name: `fib/20`, as criterion spells its ids. Copies share one text, which lives as long as the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BenchName(&'static str);

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl BenchName {
    /// A bench of this name.
    ///
    /// # Errors
    /// A name that is empty, too long, or holds control characters.
    pub fn new(name: &str) -> Result<Self> {
        ensure!(
            is_name(name),
            "a bench's name has 1 to {MAX_NAME_BYTES} bytes and no control characters; rename the bench '{name}'"
        );
        Ok(Self::kept(name))
    }

    /// The name of a bench that somebody else named, of any length and any characters: what is no name as it is becomes one, cut and
    /// cleaned, with eight digits of its SHA-256 behind it that tell it from others.
    pub fn of(text: &str) -> Self {
        if is_name(text) {
            return Self::kept(text);
        }
        let mut cut = String::new();
        for part in text.chars().map(|part| if part.is_control() { ' ' } else { part }) {
            if cut.len() + part.len_utf8() > CUT_NAME_BYTES {
                break;
            }
            cut.push(part);
        }
        Self::kept(&format!("{cut}~{}", &sha256::of(text)[..8]))
    }

    fn kept(name: &str) -> Self {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return Self(known);
        }
        let kept: &'static str = name.to_owned().leak();
        names.insert(kept);
        Self(kept)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control)
}

impl fmt::Display for BenchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}
