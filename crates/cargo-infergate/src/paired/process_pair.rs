//! A process of each side: they take turns.

use super::one_core::OneCore;
use infergate_core::case::{Case, Phase};
use infergate_core::worker::{Capability, Client, PreparedReply, Sampling, WorkerError};
use infergate_receipts::{BlockCase, PairedCase, ProcessSamples, Side};

/// A fresh process of each side.
pub struct ProcessPair {
    pub base: Client<'static>,
    pub head: Client<'static>,
    /// The number of its block, which decides the core of cases that compute in one thread.
    pub nth: usize,
    /// The side that got the last request: an error is its.
    pub last_side: Side,
}

/// Why a case cannot be run: it fails in head alone, in base alone, or in both (head's error first).
pub enum PrepareFailure {
    Head(WorkerError),
    Base(WorkerError),
    Both(WorkerError, WorkerError),
}

/// The times of a sample, nanoseconds; the last one is the whole. Only a generation has more than one: `t_k - t_0` of each token.
type Sample = Vec<u64>;

impl ProcessPair {
    /// Whether both workers have this capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.base.can(capability) && self.head.can(capability)
    }

    /// The ids of base's process and of head's.
    pub fn processes(&self) -> [u32; 2] {
        [&self.base, &self.head].map(Client::process_id)
    }

    /// Measures the pairs of one case. The side that runs first changes from pair to pair and from turn to turn.
    pub fn measure(&mut self, case: &PairedCase, ran_first: Side) -> Result<BlockCase, WorkerError> {
        let _core = if case.one_core { OneCore::take(self.processes(), self.nth) } else { None };
        let mut record = BlockCase::new(case.id, Vec::new(), Vec::new());
        let is_of_tokens = case.id.phase() == Phase::Generate && case.iterations_per_sample == 1;
        for pair in 0..case.pairs {
            let first = if pair % 2 == 0 { ran_first } else { ran_first.other() };
            let sides = [first, first.other()];
            let samples = match case.turn_tokens {
                Some(tokens) => self.in_turns(case.id, tokens, sides)?,
                None => sides.iter().map(|side| self.sample_last(case, *side)).collect::<Result<_, _>>()?,
            };
            for (side, sample) in sides.into_iter().zip(samples) {
                let (times_ns, tokens_ns) = match side {
                    Side::Base => (&mut record.base_ns, &mut record.base_tokens_ns),
                    Side::Head => (&mut record.head_ns, &mut record.head_tokens_ns),
                };
                times_ns.push(whole_ns(&sample, case.id, side)?);
                if is_of_tokens {
                    tokens_ns.push(sample);
                }
            }
        }
        Ok(record)
    }

    /// Measures one generation of each side, in turns of `tokens` tokens, in the order of `sides`.
    fn in_turns(&mut self, case: Case, tokens: usize, sides: [Side; 2]) -> Result<Vec<Sample>, WorkerError> {
        let mut tokens_ns = vec![Vec::new(); sides.len()];
        let turns = case.output_tokens().div_ceil(tokens);
        for turn in 0..turns {
            for place in 0..sides.len() {
                let at = if turn % 2 == 0 { place } else { sides.len() - 1 - place };
                let side = sides[at];
                let steps_ns = self.client(side).turn(case, tokens).map_err(|error| error.of(side.name()))?;
                let expected = tokens.min(case.output_tokens() - turn * tokens);
                if steps_ns.len() != expected {
                    let text = format!("{}: {case}: {} tokens instead of {expected}", side.name(), steps_ns.len());
                    return Err(WorkerError::Unusable(text));
                }
                for step_ns in steps_ns {
                    let before = tokens_ns[at].last().copied().unwrap_or(0_u64);
                    tokens_ns[at].push(before.saturating_add(step_ns));
                }
            }
        }
        Ok(tokens_ns)
    }

    fn sample_last(&mut self, case: &PairedCase, side: Side) -> Result<Sample, WorkerError> {
        Ok(self.sample(side, case)?.samples_ns.pop().unwrap_or_default())
    }

    /// Takes one sample of a side, of as many iterations as are planned.
    pub fn sample(&mut self, side: Side, case: &PairedCase) -> Result<ProcessSamples, WorkerError> {
        let sampling = Sampling { warm_up: case.warm_up, ..Sampling::of(1, case.iterations_per_sample) };
        self.client(side).sample(case.id, sampling).map_err(|error| error.of(side.name()))
    }

    /// The outputs of base and head. Base is fed head's output, so that the logits of both sides line up.
    pub fn outputs(&mut self, case: Case) -> Result<(PreparedReply, PreparedReply), PrepareFailure> {
        let in_head = self.head.prepare(case, None).map_err(|in_head| match self.base.prepare(case, None) {
            Ok(_) => PrepareFailure::Head(in_head),
            Err(in_base) => PrepareFailure::Both(in_head, in_base),
        })?;
        let in_base = self.base.prepare_beside(case, &in_head.output).map_err(PrepareFailure::Base)?;
        Ok((in_base, in_head))
    }

    pub fn client(&mut self, side: Side) -> &mut Client<'static> {
        self.last_side = side;
        match side {
            Side::Base => &mut self.base,
            Side::Head => &mut self.head,
        }
    }
}

/// The whole of a sample. A bench may take less than a step of the clock.
fn whole_ns(sample: &[u64], case: Case, side: Side) -> Result<u64, WorkerError> {
    let least_ns = u64::from(case.phase() == Phase::Bench);
    let ns = sample.last().copied().unwrap_or(0).max(least_ns);
    if ns == 0 {
        let text = format!("{}: an iteration of {case} took no time; fix the worker's clock", side.name());
        return Err(WorkerError::Unusable(text));
    }
    Ok(ns)
}
