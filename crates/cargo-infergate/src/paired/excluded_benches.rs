//! Benches that cannot be measured: each is named, and the others are compared without them.

use infergate_core::case::{Case, Phase};
use infergate_core::printable::printable_within;
use infergate_core::stats::median;
use infergate_core::worker::WorkerError;

use super::PairedRequest;
use super::iterations::{cap_iterations, trial};
use super::process_pair::ProcessPair;
use infergate_receipts::{BlockCase, Note, PairedCase, PairedReceipt, Side};

/// The most characters of a reason.
const MOST_CHARACTERS: usize = 240;

/// The shortest time of an iteration that does anything (ns).
const LEAST_NS: f64 = 0.1;

/// Benches that the attempts at a pilot excluded so far.
#[derive(Default)]
pub struct ExcludedBenches(Vec<ExcludedBench>);

struct ExcludedBench {
    case: Case,
    fails: Fails,
    error: WorkerError,
}

/// Where a bench fails.
#[derive(Clone, Copy, PartialEq)]
pub enum Fails {
    HeadAlone,
    BaseAlone,
    Both,
}

impl ExcludedBenches {
    /// Excludes a case that failed by `error`.
    ///
    /// # Errors
    /// `error` itself, which ends the run, if the case is no bench of a bench target, was requested by its name, or cannot have caused it.
    pub fn exclude(
        &mut self,
        request: &PairedRequest,
        case: Case,
        error: WorkerError,
        fails: Fails,
    ) -> Result<(), WorkerError> {
        let is_named = request.cases.iter().any(|named| *named == case.to_string() || *named == case.id());
        if case.phase() != Phase::Bench || !request.is_of_bench_target() || !can_be_the_benchs_fault(&error) || is_named
        {
            return Err(error);
        }
        self.0.push(ExcludedBench { case, fails, error });
        Ok(())
    }

    pub fn has(&self, case: Case) -> bool {
        self.0.iter().any(|bench| bench.case == case)
    }

    /// Adds to the receipt why each was excluded. If one fails in head alone, the run does not pass.
    pub fn note(&self, request: &PairedRequest, receipt: &mut PairedReceipt) {
        for bench in &self.0 {
            let text = bench.describe(request);
            match bench.fails {
                Fails::HeadAlone => receipt.broken.push(text),
                Fails::BaseAlone | Fails::Both => receipt.notes.push(Note::from(text)),
            }
        }
    }

    /// The error of a run whose benches were all excluded: that of the first that fails in head alone, else that they cannot be compared.
    pub fn nothing_left(&mut self, request: &PairedRequest) -> Result<(), WorkerError> {
        let Some(last) = self.0.last() else { return Ok(()) };
        let not_comparable = WorkerError::NotComparable(last.describe(request));
        let of_head = self.0.iter().position(|bench| bench.fails == Fails::HeadAlone);
        Err(of_head.map_or(not_comparable, |at| self.0.swap_remove(at).error))
    }
}

impl ExcludedBench {
    /// On which side it fails, and why.
    fn describe(&self, request: &PairedRequest) -> String {
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

/// Whether the bench can have caused an error. Otherwise the run itself failed.
pub fn can_be_the_benchs_fault(error: &WorkerError) -> bool {
    !matches!(error, WorkerError::Interrupted(_) | WorkerError::Failed(_))
}

/// Whether the worker answered with this error: then it still runs and can take another case.
pub fn worker_survives(error: &WorkerError) -> bool {
    matches!(error, WorkerError::Refused(_) | WorkerError::Invalid(_))
}

/// On which side a case fails whose sampling failed. If head fails, base is tried with as many iterations.
pub fn who_fails(pair: &mut ProcessPair, mut plan: PairedCase) -> Fails {
    if pair.last_side == Side::Base {
        return Fails::BaseAlone;
    }
    let iterations = plan.iterations_per_sample;
    let mut in_base = |iterations| trial(pair, Side::Base, &mut plan, iterations);
    let most = cap_iterations(iterations, |iterations| Ok(in_base(iterations)?.timed_ns));
    if most.and_then(in_base).is_err() { Fails::Both } else { Fails::HeadAlone }
}

/// The error of a bench that the compiler removed on one side: an iteration takes less than a processor's cycle.
pub fn compiled_away(plan: &PairedCase, seen: &BlockCase) -> Option<WorkerError> {
    let each_ns = |samples: &[u64]| {
        let samples: Vec<f64> = samples.iter().map(|ns| *ns as f64 / plan.iterations_per_sample as f64).collect();
        median(&samples).unwrap_or(f64::INFINITY)
    };
    let least_ns = each_ns(&seen.base_ns).min(each_ns(&seen.head_ns));
    let why = || {
        format!(
            "an iteration takes {least_ns:.3} ns, so the compiler left nothing of it; let it return what it computes, and black_box what it reads"
        )
    };
    (least_ns < LEAST_NS).then(|| WorkerError::Invalid(why()))
}
