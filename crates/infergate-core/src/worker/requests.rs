//! Each request as a method, its answer checked: what a worker says may be anything.

use std::path::Path;
use std::time::Duration;

use super::honesty::ensure_waited_for;
use super::{
    Capability, Client, CountedTokens, Loaded, MemoryState, PreparedReply, Profile, Request, SampleReply, Sampling,
    TextReply, TurnReply, WorkerError,
};
use crate::case::{BenchName, Case, Phase};
use crate::engine::{LoadRequest, TokenId, first_difference};
use crate::receipt::{AllocationSite, CountedCase, InferenceMemory, LeakSite, Output, ProcessSamples, TtftParts};

impl Client<'_> {
    /// Loads the model.
    ///
    /// # Errors
    /// The engine's own, or a worker that died, hangs or breaks the protocol.
    #[inline]
    pub fn load(&mut self, request: &LoadRequest, prompt_text: Option<&str>) -> Result<Loaded, WorkerError> {
        let request = Request::Load { request: request.clone(), prompt_text: prompt_text.map(str::to_owned) };
        let (mut loaded, waited): (Loaded, _) = self.ask(&request)?;
        self.ensure_waited_for(u128::from(loaded.load_ns), waited)?;
        if let Some(what) = loaded.engine.unsound() {
            let what = format!("{}: {what}; fix what the engine says of itself (Engine::info)", self.name);
            return Err(WorkerError::Unusable(what));
        }
        self.rename(&mut loaded.benches);
        Ok(loaded)
    }

    /// Puts the prefix in front of the names of benches, and keeps what the worker calls them.
    #[inline]
    fn rename(&mut self, benches: &mut [Case]) {
        let Some(prefix) = &self.bench_prefix else { return };
        for bench in benches {
            let Case::Bench(name) = *bench else { continue };
            let ours = Case::Bench(BenchName::of(&format!("{prefix}{name}")));
            self.own_names.insert(ours, *bench);
            *bench = ours;
        }
    }

    /// What the worker calls a case.
    #[inline]
    fn own_name(&self, case: Case) -> Case {
        self.own_names.get(&case).copied().unwrap_or(case)
    }

    /// Time to first token; the first after [`load`](Self::load) is cold.
    ///
    /// # Errors
    /// As [`load`](Self::load); [`WorkerError::Invalid`] for times that cannot be true.
    #[inline]
    pub fn ttft(&mut self, prompt_tokens: usize) -> Result<TtftParts, WorkerError> {
        let (parts, waited): (TtftParts, _) = self.ask(&Request::Ttft { prompt_tokens })?;
        // The load's time belongs to an earlier answer.
        let warm = TtftParts { load_ns: None, ..parts };
        self.ensure_waited_for(u128::from(warm.ttft_ns()), waited)?;
        Ok(parts)
    }

    /// Verifies a case's output and warms it up; with the output of an earlier process in `known` it only warms up.
    ///
    /// # Errors
    /// As [`load`](Self::load); [`WorkerError::Invalid`] where the output is not the `known` one.
    #[inline]
    pub fn prepare(&mut self, case: Case, known: Option<Vec<TokenId>>) -> Result<PreparedReply, WorkerError> {
        self.prepare_as(case, known, None)
    }

    /// Verifies a case's output and warms it up, following the tokens of another output while the fingerprint is taken, where
    /// the worker can.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn prepare_beside(&mut self, case: Case, other: &Output) -> Result<PreparedReply, WorkerError> {
        let feed = self.can(Capability::Fingerprint).then(|| other.path());
        self.prepare_as(case, None, feed)
    }

    #[inline]
    fn prepare_as(
        &mut self,
        case: Case,
        known: Option<Vec<TokenId>>,
        feed: Option<Vec<TokenId>>,
    ) -> Result<PreparedReply, WorkerError> {
        let request = Request::Prepare { case: self.own_name(case), known: known.clone(), feed };
        let (reply, _): (PreparedReply, _) = self.ask(&request)?;
        let tokens = reply.output.ids.len();
        if !case.can_have_ids(tokens) {
            return Err(
                self.broken(&format!("gave {tokens} output tokens of {case} instead of {}", case.output_tokens()))
            );
        }
        known.map_or(Ok(()), |known| ensure_same(case, &known, &reply.output.ids))?;
        Ok(reply)
    }

    /// What `ids` say; `None` where the worker cannot tell.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn text(&mut self, ids: &[TokenId]) -> Result<Option<String>, WorkerError> {
        if !self.can(Capability::Text) {
            return Ok(None);
        }
        let (reply, _): (TextReply, _) = self.ask(&Request::Text { ids: ids.to_vec() })?;
        Ok(reply.text)
    }

    /// Takes samples of a prepared case, each the sum over its iterations.
    ///
    /// # Errors
    /// As [`ttft`](Self::ttft).
    #[inline]
    pub fn sample(&mut self, case: Case, sampling: Sampling) -> Result<ProcessSamples, WorkerError> {
        let Sampling { count, iterations, .. } = sampling;
        let (reply, waited): (SampleReply, _) = self.ask(&Request::Sample { case: self.own_name(case), sampling })?;
        self.idle = reply.idle;
        let samples_ns = reply.samples_ns;
        let reported_ns = self.sum_ns(case, count, &samples_ns)?;
        // Between two steps of a decode case an engine may read the whole prompt again.
        let steps = u32::try_from(count.saturating_mul(iterations)).unwrap_or(u32::MAX);
        let set_up = match case.phase() {
            Phase::Decode => self.timeouts.prepared(case).unwrap_or_default().saturating_mul(steps),
            Phase::Prefill | Phase::Generate => Duration::ZERO,
            // Its batches may be set up for as long as it likes.
            Phase::Bench => waited,
        };
        self.check_times(case, reported_ns, waited, set_up)?;
        Ok(ProcessSamples { samples_ns, iterations_per_sample: iterations })
    }

    /// What `count` samples took together, nanoseconds.
    fn sum_ns(&self, case: Case, count: usize, samples_ns: &[Vec<u64>]) -> Result<u128, WorkerError> {
        let given = samples_ns.len();
        if given != count {
            return Err(self.broken(&format!("gave {given} samples of {case} where {count} were requested")));
        }
        let times = case.times_in_sample();
        if let Some(sample) = samples_ns.iter().find(|sample| sample.len() != times || !sample.is_sorted()) {
            return Err(self.broken(&format!(
                "gave a sample of {case} with {} times that is not {times} times in a row",
                sample.len()
            )));
        }
        Ok(samples_ns.iter().filter_map(|sample| sample.last()).map(|ns| u128::from(*ns)).sum())
    }

    /// As [`sample`](Self::sample), with where its threads were meanwhile written to `file`, which is not read here.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); a worker that cannot.
    #[inline]
    pub fn profile(
        &mut self,
        case: Case,
        count: usize,
        iterations: usize,
        file: &Path,
    ) -> Result<Profile, WorkerError> {
        let own = self.own_name(case);
        let request = Request::Profile { case: own, count, iterations, file: file.to_owned() };
        let (profile, waited): (Profile, _) = self.ask(&request)?;
        let reported_ns = self.sum_ns(case, count, &profile.samples_ns)?;
        self.ensure_waited_for_all(case, reported_ns, waited)?;
        Ok(profile)
    }

    /// Up to `tokens` further tokens of one generation of a prepared case: the time of each, nanoseconds.
    ///
    /// # Errors
    /// As [`ttft`](Self::ttft).
    #[inline]
    pub fn turn(&mut self, case: Case, tokens: usize) -> Result<Vec<u64>, WorkerError> {
        let (reply, waited): (TurnReply, _) = self.ask(&Request::Turn { case: self.own_name(case), tokens })?;
        self.idle = reply.idle;
        let given = reply.step_ns.len();
        if !(1..=tokens).contains(&given) {
            return Err(self.broken(&format!("gave {given} tokens where 1 to {tokens} were requested")));
        }
        self.check_times(case, reply.step_ns.iter().map(|ns| u128::from(*ns)).sum(), waited, Duration::ZERO)?;
        Ok(reply.step_ns)
    }

    /// The worker's memory now, or after one more run of a prepared case.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn memory(&mut self, case: Option<Case>) -> Result<MemoryState, WorkerError> {
        Ok(self.ask(&Request::Memory { case: case.map(|case| self.own_name(case)) })?.0)
    }

    /// What one generation of a prepared case takes.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn inference(&mut self, case: Case) -> Result<InferenceMemory, WorkerError> {
        Ok(self.ask(&Request::Inference { case: self.own_name(case) })?.0)
    }

    /// Exact counters of a prepared case.
    ///
    /// # Errors
    /// As [`load`](Self::load); a worker that does not count.
    #[inline]
    pub fn count(&mut self, case: Case, repeats: usize) -> Result<CountedCase, WorkerError> {
        let (counted, _): (CountedCase, _) = self.ask(&Request::Count { case: self.own_name(case), repeats })?;
        Ok(CountedCase { id: case, ..counted })
    }

    /// Where what outlives its run was allocated.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[inline]
    pub fn locate(&mut self, case: Case, runs: usize) -> Result<Vec<LeakSite>, WorkerError> {
        Ok(self.ask(&Request::Locate { case: self.own_name(case), runs })?.0)
    }

    /// Where a prepared case allocates.
    ///
    /// # Errors
    /// As [`load`](Self::load); a worker that does not count.
    #[inline]
    pub fn sites(&mut self, case: Case) -> Result<Vec<AllocationSite>, WorkerError> {
        Ok(self.ask(&Request::Sites { case: self.own_name(case) })?.0)
    }

    /// How many tokens each of `texts` has by the loaded model's tokenizer, without special tokens.
    ///
    /// # Errors
    /// As [`load`](Self::load); a model without a tokenizer.
    #[inline]
    pub fn count_tokens(&mut self, texts: &[String]) -> Result<Vec<u64>, WorkerError> {
        let (CountedTokens { tokens }, _) = self.ask(&Request::CountTokens { texts: texts.to_vec() })?;
        if tokens.len() != texts.len() {
            let (given, asked) = (tokens.len(), texts.len());
            return Err(self.broken(&format!("counted the tokens of {given} texts where {asked} were given")));
        }
        Ok(tokens)
    }

    pub(super) fn ensure_waited_for(&self, reported_ns: u128, waited: Duration) -> Result<(), WorkerError> {
        if self.virtual_clock {
            return Ok(());
        }
        ensure_waited_for(reported_ns, waited).map_err(WorkerError::Invalid)
    }

    /// A bench says itself what it took, and may add up what its threads did.
    fn ensure_waited_for_all(&self, case: Case, reported_ns: u128, waited: Duration) -> Result<(), WorkerError> {
        if matches!(case, Case::Bench(_)) { Ok(()) } else { self.ensure_waited_for(reported_ns, waited) }
    }

    fn check_times(
        &mut self,
        case: Case,
        reported_ns: u128,
        waited: Duration,
        set_up: Duration,
    ) -> Result<(), WorkerError> {
        self.ensure_waited_for_all(case, reported_ns, waited)?;
        if self.virtual_clock {
            return Ok(());
        }
        self.honesty.note(case, reported_ns, waited, set_up).map_err(WorkerError::Invalid)
    }
}

/// A worker may compute the whole output again, and not compare it.
fn ensure_same(case: Case, known: &[TokenId], ids: &[TokenId]) -> Result<(), WorkerError> {
    let Some(at) = first_difference(known, ids) else { return Ok(()) };
    let (what, it) = match case {
        Case::Bench(_) => ("its output".to_owned(), "bench"),
        _ => (format!("output token {}", at + 1), "engine"),
    };
    Err(WorkerError::Invalid(format!("{case}: {what} is not the same in two processes; make the {it} deterministic")))
}
