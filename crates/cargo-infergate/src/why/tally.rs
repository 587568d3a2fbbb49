//! How often each function was seen, block by block, and how a time differs from block to block.

use std::collections::BTreeMap;
use std::rc::Rc;

use infergate_core::stats::{mean, sample_std, student_interval, student_t_upper_tail};
use infergate_core::worker::Profile;
use infergate_receipts::Moved;

use super::image::{Change, Frame};
use super::names::is_std;

/// The name of a function.
pub type Name = Rc<str>;

/// What of a function's samples is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    All,
    /// Samples in which this function ran: the function itself, or one that it calls.
    Ran(Name),
    /// Samples at this line.
    At(Rc<str>),
    /// Samples in which this function calls it.
    CalledBy(Name),
}

/// One side of one block.
#[derive(Default)]
pub struct Tally {
    /// By the function that a sample counts to.
    pub samples: BTreeMap<(Name, Part), u64>,
    /// By whole stack, outermost first.
    pub stacks: BTreeMap<Vec<Name>, u64>,
    /// Functions that may have changed that were seen anywhere in a stack, and how.
    pub changed: BTreeMap<Name, Change>,
    /// Records, all with the same weight.
    pub records: u64,
    /// Interruptions in timed regions, and elsewhere.
    pub timed: u64,
    pub untimed: u64,
    /// Processor time, nanoseconds.
    pub processor_ns: u64,
    /// Time by the clock in timed regions, nanoseconds.
    pub clock_ns: u64,
    pub iterations: u64,
}

/// The frame that a sample counts to, with what it calls: the innermost that was edited, for the compiler changes others with it; else
/// the innermost whose instructions changed; else the one that ran.
fn whose(frames: &[Frame]) -> Option<usize> {
    let innermost = |least| frames.iter().position(|frame| frame.change >= Some(least));
    innermost(Change::Edited).or_else(|| innermost(Change::Instructions)).or((!frames.is_empty()).then_some(0))
}

impl Tally {
    pub fn stack(&mut self, frames: &[Frame]) {
        self.records += 1;
        let names = frames.iter().rev().map(|frame| frame.name.clone());
        *self.stacks.entry(names.collect()).or_default() += 1;
        let mut count = |name: &Name, part| *self.samples.entry((name.clone(), part)).or_default() += 1;
        let Some(at) = whose(frames) else { return count(&"(not in any file)".into(), Part::All) };
        let owner = &frames[at];
        // The standard library's `with` and `call_once` say nothing.
        let above = || frames[at + 1..].iter().filter(|caller| caller.name != owner.name);
        let caller = above()
            .find(|caller| !is_std(&caller.name))
            .or_else(|| above().next())
            .map(|caller| Part::CalledBy(caller.name.clone()));
        let parts = [Part::All, Part::Ran(frames[0].name.clone())].into_iter().chain(caller);
        parts.chain(owner.place.clone().map(Part::At)).for_each(|part| count(&owner.name, part));
        for (frame, change) in frames.iter().filter_map(|frame| Some((frame, frame.change?))) {
            let known = self.changed.entry(frame.name.clone()).or_insert(change);
            *known = change.max(*known);
        }
    }

    /// Adds the worker's report of one turn.
    pub fn turn(&mut self, profile: &Profile, iterations: u64) {
        // A worker may report anything.
        self.timed = self.timed.saturating_add(profile.timed);
        self.untimed = self.untimed.saturating_add(profile.untimed);
        self.processor_ns = self.processor_ns.saturating_add(profile.processor_ns);
        let times_ns = profile.samples_ns.iter().filter_map(|sample| sample.last());
        self.clock_ns = times_ns.fold(self.clock_ns, |sum, ns| sum.saturating_add(*ns));
        self.iterations += iterations;
    }

    /// Processor time of an iteration in a part of a function's samples, nanoseconds.
    pub fn ns_of(&self, name: &Name, part: &Part) -> f64 {
        self.samples.get(&(name.clone(), part.clone())).copied().unwrap_or(0) as f64 * self.record_ns()
    }

    /// Processor time of an iteration for each record, nanoseconds.
    pub fn record_ns(&self) -> f64 {
        let timed_ns =
            self.processor_ns as f64 * self.timed as f64 / (self.timed.saturating_add(self.untimed)).max(1) as f64;
        timed_ns / self.records.max(1) as f64 / self.iterations.max(1) as f64
    }

    /// An iteration by the clock, nanoseconds.
    pub fn iteration_ns(&self) -> f64 {
        self.clock_ns as f64 / self.iterations.max(1) as f64
    }
}

/// A block: base, head.
pub type Pair = (Tally, Tally);

/// How a time changed, with Student's interval over blocks, and the two-sided p value of no change.
pub fn moved_of(base: &[f64], head: &[f64]) -> Option<(Moved, f64)> {
    let changes: Vec<f64> = head.iter().zip(base).map(|(head, base)| head - base).collect();
    let (low_ns, high_ns) = student_interval(&changes, 0.025)?;
    let (change_ns, freedom) = (mean(&changes)?, (changes.len() - 1) as f64);
    let error_ns = sample_std(&changes)? / (changes.len() as f64).sqrt();
    let p = match error_ns > 0.0 {
        true => (2.0 * student_t_upper_tail((change_ns / error_ns).abs(), freedom)?).min(1.0),
        // The same in all blocks.
        false if change_ns == 0.0 => 1.0,
        false => 0.0,
    };
    Some((Moved { base_ns: mean(base)?, head_ns: mean(head)?, low_ns, high_ns }, p))
}
