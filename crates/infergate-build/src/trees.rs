//! The checkouts of one gate, and the folders that they are kept in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};

use super::revision::{Slot, Tree};
use super::workspace::Workspace;
use super::{bench_choice, harness};
use crate::bench_target::Wanted;
use infergate_core::worker::WorkerError;

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

    /// Checks out base. If it has no such bench target, those of the working tree's package are laid over a checkout of its own, and a
    /// sentence for the verdict says so.
    ///
    /// # Errors
    /// As [`Tree::checkout`] and [`harness::lay`]; [`NotComparable`](WorkerError::NotComparable) if the working tree has none either.
    pub fn base(&self, revision: &str, wanted: &Wanted) -> Result<(Rc<Tree>, Option<String>)> {
        let base = self.checkout(revision, Slot::Base, wanted)?;
        if !base.workspace()?.with_bench(&wanted.bench).is_empty() {
            return Ok((base, None));
        }
        let head = Workspace::load(Path::new("."))?;
        let Some(own) = head.with_bench(&wanted.bench).into_iter().next() else {
            let remedy = bench_choice::remedy(&wanted.bench, &head);
            let text = format!("neither base nor head has the bench target '{}'; {remedy}", wanted.bench.target);
            bail!(WorkerError::NotComparable(text));
        };
        let tree = self.get(Slot::WithHeadsBenches, wanted, || {
            let mut tree = Tree::checkout(revision, Slot::WithHeadsBenches, wanted)?;
            tree.target.clone_from(&base.target);
            tree.take_lock_file(&head.lock_file())?;
            harness::lay(own, &head, &tree)?;
            tree.workspace.take();
            Ok(tree)
        })?;
        let name = &wanted.bench.target;
        Ok((tree, Some(format!("base has no bench target '{name}': head's benches were laid over it"))))
    }
}
