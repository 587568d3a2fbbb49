//! How long an answer may take before the worker counts as hung.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Request, Sampling};
use crate::case::Case;
use crate::load::{Arrivals, LevelPlan, RequestShape, Stop};
use crate::receipt::FINGERPRINT_POSITIONS;

/// A worker says who it is, or how much memory it has, before it does anything that takes time.
const QUICK_LIMIT: Duration = Duration::from_secs(120);
/// The first load may fetch a model, and nothing is known of the first run of a case.
const FIRST_LIMIT: Duration = Duration::from_secs(30 * 60);

/// An answer may take this many times what the like of it took, and never less than [`LEAST_LIMIT`].
const PATIENCE: f64 = 10.0;
const LEAST_LIMIT: Duration = Duration::from_secs(10);
/// The first requests that are served together may take so long at least.
const LEAST_FIRST_LEVEL: Duration = Duration::from_secs(120);
/// A machine that has much to do wakes a process up later than it asked for, and hardly ever by more than this.
const MOST_BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Walking the call stack at each allocation makes a run slower by about this much at the most.
const STACKS_COST: f64 = 20.0;

/// The limits of one worker's answers. They follow what was seen, by the asking side's own clock: of this process, and of
/// earlier ones of the same program.
#[derive(Debug, Clone)]
pub struct Patience {
    first: Duration,
    /// The same of the first run of a criterion bench, where it is another,
    first_of_bench: Option<Duration>,
    /// and of another case.
    first_of_case: Option<Duration>,
    /// A load may take so long whatever earlier ones took.
    least_load: Duration,
    load: Option<Duration>,
    ttft: Option<Duration>,
    /// The longest `prepare` of each case, which computes its whole output at least once.
    cases: BTreeMap<Case, Duration>,
    /// The most that a closed level took, seconds for each of its prompt and output tokens.
    level_s_per_token: Option<f64>,
}

/// How long a process was awake while it waited for an answer. One that is suspended, or on a machine that sleeps, hears nothing
/// meanwhile, and that is no silence of the one it waits for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Awake {
    looked: Duration,
    away: Duration,
}

impl Awake {
    /// The time awake until now, which is `passed` after the wait began. To be asked every fraction of a second: of what lies between
    /// two times a second counts at the most.
    pub fn at(&mut self, passed: Duration) -> Duration {
        self.away += passed.saturating_sub(self.looked).saturating_sub(MOST_BETWEEN_LOOKS);
        self.looked = passed;
        passed.saturating_sub(self.away)
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::with_first(FIRST_LIMIT)
    }
}

impl Patience {
    /// `first` is the limit for what nothing is known of yet.
    pub fn with_first(first: Duration) -> Self {
        Self {
            first,
            first_of_bench: None,
            first_of_case: None,
            least_load: LEAST_LIMIT,
            load: None,
            ttft: None,
            cases: BTreeMap::new(),
            level_s_per_token: None,
        }
    }

    /// The same, and a bench that was never run may take `first_of_bench`.
    #[must_use]
    pub fn with_first_of_bench(self, first_of_bench: Option<Duration>) -> Self {
        Self { first_of_bench, ..self }
    }

    /// The same, and any other case that was never run may take `first_of_case`.
    #[must_use]
    pub fn with_first_of_case(self, first_of_case: Option<Duration>) -> Self {
        Self { first_of_case, ..self }
    }

    /// The same, and each load may take `least_load`.
    #[must_use]
    pub fn with_least_load(self, least_load: Duration) -> Self {
        Self { least_load, ..self }
    }

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
            Request::LoadLevel { plan } => self.level(plan),
            Request::CountTokens { .. } => self.first,
            Request::Window { plan, .. } => Duration::from_nanos(plan.give_up_ns).saturating_add(QUICK_LIMIT),
        }
    }

    /// What the plan says that it takes by the clock, and for its tokens as long as those of earlier levels took. Many
    /// requests at once never take longer than one after the other; a first level should therefore be a short one.
    fn level(&self, plan: &LevelPlan) -> Duration {
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
        let planned_s = match (plan.stop, plan.arrivals) {
            (Stop::Duration { ns }, _) => ns as f64 / 1e9,
            (Stop::Requests { count }, Arrivals::Open { requests_per_s, .. }) => count as f64 / requests_per_s,
            (Stop::Requests { .. }, Arrivals::Closed { .. }) => 0.0,
        };
        let each = || plan.scenarios.iter().map(RequestShape::work_tokens).max().unwrap_or(0);
        // Before a stop by time there is the warm-up, and behind it what is in flight then.
        let users = if let Arrivals::Closed { users } = plan.arrivals { u64::from(users) } else { 1 };
        let around = users.saturating_mul(plan.warm_up_requests).saturating_add(plan.slots.into());
        let tokens = plan.work_tokens().unwrap_or_else(|| around.saturating_mul(each()));
        let alone = u64::from(plan.compared).saturating_mul(each());
        let each_s = self.level_s_per_token.or_else(|| self.case_s_per_token());
        let work = each_s.map(|each_s| seconds(each_s * tokens.saturating_add(alone) as f64));
        // What serves several is made at the first one.
        let least = if self.level_s_per_token.is_none() { LEAST_FIRST_LEVEL } else { LEAST_LIMIT };
        self.scaled(work, 1.0).max(least).saturating_add(seconds(planned_s))
    }

    /// More than a token takes, by the prepared case that says least: a step takes no less than a token of the prompt, and there were as many
    /// steps as a fingerprint has positions.
    fn case_s_per_token(&self) -> Option<f64> {
        let cases = self.cases.iter().filter(|(case, _)| case.prompt_tokens() > 0);
        cases.map(|(_, took)| took.as_secs_f64() / FINGERPRINT_POSITIONS as f64).min_by(f64::total_cmp)
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
            Request::LoadLevel { plan } if matches!(plan.arrivals, Arrivals::Closed { .. }) => {
                let Some(tokens) = plan.work_tokens().filter(|tokens| *tokens > 0) else { return };
                let each_s = took.as_secs_f64() / tokens as f64;
                self.level_s_per_token = Some(self.level_s_per_token.unwrap_or(0.0).max(each_s));
            }
            _ => {}
        }
    }

    fn runs(&self, case: &Case, times: f64) -> Duration {
        let seen = self.cases.get(case).copied();
        // Behind a launcher cases share what they compute, and in another process another one of them computes it.
        let is_shared = matches!((self.first_of_bench, case), (None, Case::Bench(_)));
        let seen = if is_shared { seen.and(self.cases.values().max().copied()) } else { seen };
        match (seen, self.first_of_bench, case) {
            (None, Some(first), Case::Bench(_)) => first,
            // In a fresh process the set-up of all benches before it may run first: no more than listing them took.
            (Some(_), _, Case::Bench(_)) => {
                let set_up = self.load.map_or(Duration::ZERO, |load| load.saturating_mul(PATIENCE as u32));
                self.scaled(seen, times.max(1.0)).saturating_add(set_up)
            }
            (None, _, _) => self.first_of_case.unwrap_or(self.first),
            _ => self.scaled(seen, times.max(1.0)),
        }
    }

    fn scaled(&self, seen: Option<Duration>, times: f64) -> Duration {
        let Some(seen) = seen else { return self.first };
        let limit = Duration::try_from_secs_f64(seen.as_secs_f64() * times * PATIENCE).unwrap_or(Duration::MAX);
        limit.max(LEAST_LIMIT)
    }
}
