//! The checkouts of one gate, and the folders that they are kept in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::rc::Rc;

use anyhow::{Context, Result};

use super::revision::{Slot, Tree};
use super::{bench_names, bench_target, harness};
use crate::wanted::Wanted;

/// The checkouts of one gate. Each is made once for all its bench targets: who edits meanwhile changes none of them.
#[derive(Default)]
pub struct Trees {
    made: RefCell<BTreeMap<String, Rc<Tree>>>,
}

impl Trees {
    /// The one of a slot, by `make` where it is not there yet.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get(&self, slot: Slot, wanted: &Wanted, make: impl FnOnce() -> Result<Tree>) -> Result<Rc<Tree>> {
        let name = slot.name(wanted);
        if let Some(made) = self.made.borrow().get(&name) {
            return Ok(made.clone());
        }
        let made = Rc::new(make()?);
        self.made.borrow_mut().insert(name, made.clone());
        Ok(made)
    }

    /// [`Tree::checkout`] of a slot.
    ///
    /// # Errors
    /// As there.
    pub fn checkout(&self, revision: &str, slot: Slot, wanted: &Wanted) -> Result<Rc<Tree>> {
        self.get(slot, wanted, || Tree::checkout(revision, slot, wanted))
    }

    /// Checks out base. Where it has no bench target, or one that is no worker yet, the working tree's is laid over a checkout of
    /// its own. Gives a sentence for the verdict then.
    ///
    /// # Errors
    /// As [`Tree::checkout`] and [`harness::lay`]; [`NotComparable`](infergate_core::worker::WorkerError::NotComparable) where the working tree has none either.
    pub fn base(&self, revision: &str, wanted: &Wanted) -> Result<(Rc<Tree>, Option<String>)> {
        let tree = self.checkout(revision, Slot::Base, wanted)?;
        let (place, name) = (tree.place()?, &wanted.bench.target);
        let bench = tree.bench(wanted)?;
        let missing = bench_target::is_missing(&bench, &place)?;
        let why = if missing {
            format!("base has no bench target '{name}'")
        } else if bench_target::is_foreign(&bench, &place)? {
            format!("base's bench target '{name}' does not use infergate")
        } else {
            return Ok((tree, None));
        };
        let tree = self.checkout(revision, Slot::Laid, wanted)?;
        let here = env::current_dir().context("the current folder cannot be read")?;
        tree.take_lock_file(&here)?;
        let checkouts = harness::Checkouts { head: &tree.repository, base: &tree.files };
        let laid = harness::lay(&wanted.bench, checkouts, &here)?;
        if missing && laid.is_none() {
            return Err(bench_names::in_neither(&wanted.bench, &place)?.into());
        }
        Ok((tree, laid.map(|what| format!("{why}: {what}"))))
    }
}
