//! The checkouts of one gate, which its bench targets share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};

use super::checkout::{Checkout, Slot};
use super::workspace::Workspace;
use super::{bench_choice, heads_benches};
use crate::bench_target::Wanted;
use infergate_core::worker::WorkerError;

/// Each is made once, by its slot: who edits meanwhile changes none of them.
#[derive(Default)]
pub struct Checkouts {
    made: RefCell<BTreeMap<String, Rc<Checkout>>>,
}

impl Checkouts {
    /// The one of a slot, by `make` where it is not there yet.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get(&self, slot: Slot, wanted: &Wanted, make: impl FnOnce() -> Result<Checkout>) -> Result<Rc<Checkout>> {
        let name = slot.name(wanted);
        if let Some(made) = self.made.borrow().get(&name) {
            return Ok(made.clone());
        }
        let made = Rc::new(make()?);
        self.made.borrow_mut().insert(name, made.clone());
        Ok(made)
    }

    /// Base's own files.
    ///
    /// # Errors
    /// As [`Checkout::of`].
    pub fn of(&self, revision: &str, wanted: &Wanted) -> Result<Rc<Checkout>> {
        self.get(Slot::Base, wanted, || Checkout::of(revision, Slot::Base, wanted))
    }

    /// Checks out base. If it has no such bench target, those of the working tree's package are laid over a checkout of its own, and a
    /// sentence for the verdict says so.
    ///
    /// # Errors
    /// As [`Checkout::of`]; [`NotComparable`](WorkerError::NotComparable) if the working tree has none either, or its own do not fit base.
    pub fn base(&self, revision: &str, wanted: &Wanted) -> Result<(Rc<Checkout>, Option<String>)> {
        let base = self.of(revision, wanted)?;
        if !base.workspace()?.with_bench(&wanted.bench).is_empty() {
            return Ok((base, None));
        }
        let head = Workspace::load(Path::new("."))?;
        let Some(own) = head.with_bench(&wanted.bench).into_iter().next() else {
            let remedy = bench_choice::remedy(&wanted.bench, &head);
            let text = format!("neither base nor head has the bench target '{}'; {remedy}", wanted.bench.target);
            bail!(WorkerError::NotComparable(text));
        };
        let checkout = self.get(Slot::WithHeadsBenches, wanted, || {
            let mut checkout = Checkout::of(revision, Slot::WithHeadsBenches, wanted)?;
            checkout.target.clone_from(&base.target);
            checkout.take_lock_file(&head.lock_file())?;
            heads_benches::lay(own, &head, &checkout)?;
            checkout.workspace.take();
            Ok(checkout)
        })?;
        let name = &wanted.bench.target;
        Ok((checkout, Some(format!("base has no bench target '{name}': head's benches were laid over it"))))
    }
}
