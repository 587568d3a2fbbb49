//! How long an answer may take before the worker counts as hung.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Request, Sampling};
use crate::case::Case;

/// A worker says who it is, or how much memory it has, before it does anything that takes time.
const QUICK_LIMIT: Duration = Duration::from_secs(120);
/// The first load may fetch a model, and nothing is known of the first run of a case.
const FIRST_LIMIT: Duration = Duration::from_secs(30 * 60);

/// An answer may take this many times what the like of it took, and never less than [`LEAST_LIMIT`].
const FACTOR: f64 = 10.0;
const LEAST_LIMIT: Duration = Duration::from_secs(10);
/// Walking the call stack at each allocation makes a run slower by about this much at the most.
const STACKS_COST: f64 = 20.0;

/// The limits of one worker's answers. They follow what was seen, by the asking side's own clock: of this process, and of
/// earlier ones of the same program.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// The limit for what nothing is known of yet.
    pub first: Duration,
    /// The limit for the first run of a criterion bench; `None`: that of another case.
    pub first_of_bench: Option<Duration>,
    /// The limit for the first run of another case; `None`: `first`.
    pub first_of_case: Option<Duration>,
    /// A load may take so long whatever earlier ones took.
    pub least_load: Duration,
    /// The longest load that was seen.
    pub load: Option<Duration>,
    /// The longest wait for a time to first token.
    pub ttft: Option<Duration>,
    /// The longest `prepare` of each case, which computes its whole output at least once.
    pub cases: BTreeMap<Case, Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first: FIRST_LIMIT,
            first_of_bench: None,
            first_of_case: None,
            least_load: LEAST_LIMIT,
            load: None,
            ttft: None,
            cases: BTreeMap::new(),
        }
    }
}

impl Timeouts {
    /// How long the answer to `request` may take.
    pub fn limit(&self, request: &Request) -> Duration {
        match request {
            Request::Hello | Request::Text { .. } | Request::Memory { case: None } => QUICK_LIMIT,
            Request::Load { .. } => self.scaled(self.load, 1.0).max(self.least_load),
            Request::Ttft { .. } => self.scaled(self.ttft, 1.0),
            Request::Sample { case, sampling: Sampling { count, iterations, warm_up } } => {
                let each = *iterations as f64 + f64::from(u8::from(*warm_up));
                self.runs(case, *count as f64 * each)
            }
            Request::Profile { case, count, iterations, .. } => self.runs(case, *count as f64 * *iterations as f64),
            Request::Turn { case, .. }
            | Request::Prepare { case, .. }
            | Request::Memory { case: Some(case) }
            | Request::Inference { case } => self.runs(case, 1.0),
            Request::Reread { case, count, .. } => self.runs(case, 3.0 * *count as f64),
            Request::Count { case, repeats } => self.runs(case, *repeats as f64),
            Request::Locate { case, runs } => self.runs(case, (*runs + 1) as f64 * STACKS_COST),
            Request::Sites { case } => self.runs(case, 2.0 * STACKS_COST),
            Request::LoadLevel { plan } => {
                let requests = u32::try_from(plan.requests().unwrap_or(1)).unwrap_or(u32::MAX);
                self.first.saturating_mul(requests).saturating_add(plan.planned())
            }
            Request::CountTokens { .. } => self.first,
            Request::Window { plan, .. } => Duration::from_nanos(plan.give_up_ns).saturating_add(QUICK_LIMIT),
        }
    }

    /// The longest that preparing `case` took, where it was prepared.
    pub fn prepared(&self, case: Case) -> Option<Duration> {
        self.cases.get(&case).copied()
    }

    /// Notes how long an answer took.
    pub fn saw(&mut self, request: &Request, took: Duration) {
        match request {
            Request::Load { .. } => self.load = self.load.max(Some(took)),
            Request::Ttft { .. } => self.ttft = self.ttft.max(Some(took)),
            Request::Prepare { case, .. } => {
                let longest = self.cases.entry(*case).or_default();
                *longest = took.max(*longest);
            }
            _ => {}
        }
    }

    fn runs(&self, case: &Case, times: f64) -> Duration {
        let seen = self.prepared(*case);
        // Behind a launcher cases share what they compute, and in another process another one of them computes it.
        let is_shared = matches!((self.first_of_bench, case), (None, Case::Bench(_)));
        let seen = if is_shared { seen.and(self.cases.values().max().copied()) } else { seen };
        match (seen, self.first_of_bench, case) {
            (None, Some(first), Case::Bench(_)) => first,
            // In a fresh process the set-up of all benches before it may run first: no more than listing them took.
            (Some(_), _, Case::Bench(_)) => {
                let set_up = self.load.map_or(Duration::ZERO, |load| load.saturating_mul(FACTOR as u32));
                self.scaled(seen, times.max(1.0)).saturating_add(set_up)
            }
            (None, _, _) => self.first_of_case.unwrap_or(self.first),
            _ => self.scaled(seen, times.max(1.0)),
        }
    }

    fn scaled(&self, seen: Option<Duration>, times: f64) -> Duration {
        let Some(seen) = seen else { return self.first };
        let limit = Duration::try_from_secs_f64(seen.as_secs_f64() * times * FACTOR).unwrap_or(Duration::MAX);
        limit.max(LEAST_LIMIT)
    }
}
