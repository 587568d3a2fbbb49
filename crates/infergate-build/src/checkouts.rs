//! The checkouts of one gate, which its bench targets share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, bail};

use super::checkout::{Checkout, Slot};
use super::workspace::Workspace;
use super::{bench_choice, heads_benches};
use crate::bench_target::BuildRequest;
use infergate_core::worker::WorkerError;

/// Checkouts by slot. Created once per slot, so later edits do not affect them.
#[derive(Default)]
pub struct Checkouts {
    made: RefCell<BTreeMap<String, Rc<Checkout>>>,
}

impl Checkouts {
    /// The checkout of a slot, made by `make` if it is not there yet.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get(
        &self,
        slot: Slot,
        request: &BuildRequest,
        make: impl FnOnce() -> Result<Checkout>,
    ) -> Result<Rc<Checkout>> {
        let name = slot.name(request);
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
    pub fn of(&self, revision: &str, request: &BuildRequest) -> Result<Rc<Checkout>> {
        self.get(Slot::Base, request, || Checkout::of(revision, Slot::Base, request))
    }

    /// Checks out base. If it has no such bench target, copies those of the working tree's package over a separate checkout of base, and
    /// gives a sentence about it for the verdict.
    ///
    /// # Errors
    /// As [`Checkout::of`]; [`NotComparable`](WorkerError::NotComparable) if the working tree has none either, or its own do not fit base.
    pub fn base(&self, revision: &str, request: &BuildRequest) -> Result<(Rc<Checkout>, Option<String>)> {
        let base = self.of(revision, request)?;
        if !base.workspace()?.with_bench(&request.bench).is_empty() {
            return Ok((base, None));
        }
        let head = Workspace::load(Path::new("."))?;
        let Some(own) = head.with_bench(&request.bench).into_iter().next() else {
            let remedy = bench_choice::remedy(&request.bench, &head);
            let text = format!("neither base nor head has the bench target '{}'; {remedy}", request.bench.target);
            bail!(WorkerError::NotComparable(text));
        };
        let checkout = self.get(Slot::WithHeadsBenches, request, || {
            let mut checkout = Checkout::of(revision, Slot::WithHeadsBenches, request)?;
            checkout.target.clone_from(&base.target);
            checkout.take_lock_file(&head.lock_file())?;
            heads_benches::overlay_benches(own, &head, &checkout)?;
            checkout.workspace.take();
            Ok(checkout)
        })?;
        let name = &request.bench.target;
        Ok((checkout, Some(format!("base has no bench target '{name}': head's benches were laid over it"))))
    }
}
