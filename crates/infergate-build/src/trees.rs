//! The checkouts of one gate, and the folders that they are kept in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;

use super::revision::Tree;
use crate::wanted::Wanted;
use infergate_core::receipt::file_word;

/// Which of the kept checkouts.
#[derive(Debug, Clone, Copy)]
pub enum Slot {
    /// What is compared with.
    Base,
    /// The same with the harness of one package of head laid over it. Others are built of base's own files.
    Laid,
    /// A step of a bisection.
    Step,
    /// HEAD on another dependency or toolchain.
    Swap,
    /// The working tree, where it cannot be built in place.
    Head,
}

impl Slot {
    /// The folder's name.
    pub fn name(self, wanted: &Wanted) -> String {
        let name = match self {
            Self::Base => "base",
            Self::Laid => match &wanted.bench.package {
                Some(package) => return format!("laid-{}", file_word(package)),
                None => "laid",
            },
            Self::Step => "step",
            Self::Swap => "swap",
            Self::Head => "head",
        };
        name.to_owned()
    }
}

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
}
