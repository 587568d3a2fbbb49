//! Benches that cannot be measured: each is named, and the others are compared without it.

use infergate_core::case::Case;
use infergate_core::printable::printable_within;
use infergate_core::stats::median;
use infergate_core::worker::{Capability, WorkerError};

use super::block::Pair;
use super::iterations::{look, try_more};
use super::{PairedRequest, Program};
use infergate_receipts::{BlockCase, Note, PairedCase, PairedReceipt};

/// Characters of a reason.
const MOST_CHARACTERS: usize = 240;

/// No iteration that does anything is shorter.
const LEAST_NS: f64 = 0.1;

/// What ends an attempt at a pilot.
pub enum Ended {
    /// A bench, without which it can be tried again.
    By(LeftOut),
    /// Nothing but such benches was there.
    WithNothingLeft,
    /// The run.
    Run(WorkerError),
}

impl From<WorkerError> for Ended {
    fn from(error: WorkerError) -> Self {
        Self::Run(error)
    }
}

impl From<anyhow::Error> for Ended {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error.into())
    }
}

/// Leaves out the bench that would end an attempt at the pilot, where the processes live on.
///
/// # Errors
/// What ends it all the same.
pub fn go_on(ended: Ended, lives: bool, left: &mut Vec<LeftOut>) -> Result<(), Ended> {
    match ended {
        Ended::By(bench) if lives => left.push(bench),
        ended => return Err(ended),
    }
    Ok(())
}

/// A bench that fails.
pub struct LeftOut {
    /// Which.
    pub case: Case,
    fails: Fails,
    error: WorkerError,
}

/// Where a bench fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    HeadAlone,
    BaseAlone,
    Both,
}

impl Ended {
    /// A case failed by `error`. What is no bench of a bench target ends the run, and so does what is no failure of its own.
    pub fn of(request: &PairedRequest, case: Case, error: WorkerError, fails: Fails) -> Self {
        let is_bench = |program: &Program| program.launcher.is_none() && program.servers.is_empty();
        let is_named = request.cases.iter().any(|named| *named == case.to_string() || *named == case.id());
        if matches!(case, Case::Bench(_)) && is_bench(&request.head) && is_own(&error) && !is_named {
            return Self::By(LeftOut { case, fails, error });
        }
        Self::Run(error)
    }

    /// The same of a sample of both, by who it names. What fails in head is tried in base, too.
    pub fn sampling(request: &PairedRequest, plan: &PairedCase, error: WorkerError, pair: &mut Pair) -> Self {
        let fails = if !error.to_string().starts_with("head") {
            Fails::BaseAlone
        } else if matches!(plan.id, Case::Bench(_)) && is_own(&error) && fails_in_base(plan, pair) {
            Fails::Both
        } else {
            Fails::HeadAlone
        };
        Self::of(request, plan.id, error, fails)
    }
}

/// Whether base fails at samples of several iterations, too, and of as many as head did.
fn fails_in_base(plan: &PairedCase, pair: &mut Pair) -> bool {
    let single = !pair.can(Capability::Iterations);
    let asked = plan.iterations_per_sample;
    try_more(asked, |iterations| look(&mut pair.base, plan.id, iterations, plan.warm_up, single)).is_err()
}

/// Whether an error can be a bench's own fault, and not that of the run.
pub fn is_own(error: &WorkerError) -> bool {
    matches!(
        error,
        WorkerError::Refused(_)
            | WorkerError::Invalid(_)
            | WorkerError::Hung(_)
            | WorkerError::Died(_)
            | WorkerError::Protocol(_)
            | WorkerError::NotComparable(_)
    )
}

/// Leaves out a bench of which the compiler left nothing on one side: what it takes is less than a processor's cycle.
pub fn ensure_something(request: &PairedRequest, plan: &PairedCase, seen: &BlockCase) -> Result<(), Ended> {
    let each_ns = |samples: &[u64]| {
        let samples: Vec<f64> = samples.iter().map(|ns| *ns as f64 / plan.iterations_per_sample as f64).collect();
        median(&samples).unwrap_or(f64::INFINITY)
    };
    let least_ns = each_ns(&seen.base_ns).min(each_ns(&seen.head_ns));
    if least_ns >= LEAST_NS {
        return Ok(());
    }
    let why = format!(
        "an iteration takes {least_ns:.3} ns, so the compiler left nothing of it; let it return what it computes, and black_box what it reads"
    );
    Err(Ended::of(request, plan.id, WorkerError::Invalid(why), Fails::Both))
}

/// Puts into the receipt why each was left out. What fails in head alone is no pass.
pub fn note(receipt: &mut PairedReceipt, left: &[LeftOut], request: &PairedRequest) {
    for bench in left {
        let said = bench.said(request);
        match bench.fails {
            Fails::HeadAlone => receipt.broken.push(said),
            Fails::BaseAlone | Fails::Both => receipt.notes.push(Note::from(said)),
        }
    }
}

impl LeftOut {
    /// Whether it gave no answer within its limit.
    pub fn has_hung(&self) -> bool {
        matches!(self.error, WorkerError::Hung(_))
    }

    /// Where it fails, and why.
    fn said(&self, request: &PairedRequest) -> String {
        let Self { case, fails, error } = self;
        let mut why = error.to_string();
        for program in [&request.base, &request.head] {
            why = why.replace(&format!("{}: ", program.name()), "");
        }
        let why = printable_within(&why, MOST_CHARACTERS);
        match fails {
            Fails::HeadAlone => format!("{case} fails in head alone: {why}"),
            Fails::BaseAlone => format!("{case}: not compared, it fails in base: {why}"),
            Fails::Both => format!("{case}: not compared, it fails in base and head: {why}"),
        }
    }
}

/// The error that a run ends with of which nothing is left. What does not work in base either cannot be compared.
pub fn last(mut left: Vec<LeftOut>, request: &PairedRequest) -> WorkerError {
    if let Some(at) = left.iter().position(|bench| bench.fails == Fails::HeadAlone) {
        return left.swap_remove(at).error;
    }
    let none = || WorkerError::Protocol("there is nothing to measure".into());
    left.last().map_or_else(none, |bench| WorkerError::NotComparable(bench.said(request)))
}
