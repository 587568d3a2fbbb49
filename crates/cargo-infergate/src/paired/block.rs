//! Two processes in turn.

use super::TurnTokens;
use super::one_core::Shared;
use crate::receipt::{BlockCase, PairedCase, PowerCase, Side, Stretched};
use infergate_core::case::{Case, Phase};
use infergate_core::worker::{Capability, Client, Sampling, WorkerError};

/// A fresh process of each side.
pub struct Pair<'a> {
    pub base: Client<'a>,
    pub head: Client<'a>,
    /// The number of its block, by which a core is taken where a case computes in one thread.
    pub nth: usize,
}

/// One sample of one contestant: a side, and how much it is slowed.
#[derive(Debug, Clone, Copy)]
struct Lane {
    side: Side,
    slowdown: f64,
}

struct Sample {
    /// The whole of it, nanoseconds.
    ns: u64,
    /// `t_k - t_0` of each token of a generation, nanoseconds.
    tokens_ns: Option<Vec<u64>>,
}

impl Sample {
    fn of_tokens(tokens_ns: Vec<u64>, case: Case, side: Side) -> Result<Self, WorkerError> {
        let ns = positive(tokens_ns.last().copied().unwrap_or(0), case, side)?;
        Ok(Self { ns, tokens_ns: Some(tokens_ns) })
    }
}

impl<'a> Pair<'a> {
    /// Whether both sides can.
    pub fn can(&self, capability: Capability) -> bool {
        self.base.can(capability) && self.head.can(capability)
    }

    /// Of base and head.
    pub fn processes(&self) -> [u32; 2] {
        [&self.base, &self.head].map(Client::process_id)
    }

    /// The pairs of one case; who runs first changes from pair to pair and from turn to turn.
    pub fn measure(
        &mut self,
        case: &PairedCase,
        ran_first: Side,
        turn_tokens: &TurnTokens,
    ) -> Result<BlockCase, WorkerError> {
        let _core = if case.one_core { Shared::core(self.processes(), self.nth) } else { None };
        let mut record = BlockCase::new(case.id, Vec::new(), Vec::new());
        for pair in 0..case.pairs {
            let first = if pair % 2 == 0 { ran_first } else { ran_first.other() };
            for (side, sample) in self.samples(case, first, 0.0, turn_tokens)? {
                match side {
                    Side::Base => {
                        record.base_ns.push(sample.ns);
                        record.base_tokens_ns.extend(sample.tokens_ns);
                    }
                    Side::Head => {
                        record.head_ns.push(sample.ns);
                        record.head_tokens_ns.extend(sample.tokens_ns);
                    }
                }
            }
        }
        Ok(record)
    }

    /// As [`measure`](Self::measure), with head slowed by each of `slowdowns`, and as many pairs for each. Who runs first
    /// changes from pair to pair as there: a process that follows itself finds its data in the caches (with one base iteration
    /// for five slowed ones 3 % on decode measured 2.4 %, with one for each 3.1 to 3.3). The slowdowns come in
    /// an order drawn anew for each pair, since what follows a long iteration is not what follows a short one.
    pub fn measure_slowed(
        &mut self,
        case: &PairedCase,
        ran_first: Side,
        slowdowns: &[f64],
        seed: u64,
        turn_tokens: &TurnTokens,
    ) -> Result<PowerCase, WorkerError> {
        let _core = if case.one_core { Shared::core(self.processes(), self.nth) } else { None };
        let slowed = slowdowns.iter();
        let slowed = slowed.map(|&slowdown| Stretched { slowdown, base_ns: Vec::new(), head_ns: Vec::new() }).collect();
        let mut record = PowerCase { id: case.id, slowed };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut lanes: Vec<usize> = (0..slowdowns.len()).collect();
        for pair in 0..case.pairs {
            random.shuffle(&mut lanes);
            for &at in &lanes {
                let slowed = &mut record.slowed[at];
                let first = if (pair + at) % 2 == 0 { ran_first } else { ran_first.other() };
                for (side, sample) in self.samples(case, first, slowed.slowdown, turn_tokens)? {
                    if side == Side::Head { &mut slowed.head_ns } else { &mut slowed.base_ns }.push(sample.ns);
                }
            }
        }
        Ok(record)
    }

    /// One sample of each, the `first` side's first; head is slowed by `slowdown`.
    fn samples(
        &mut self,
        case: &PairedCase,
        first: Side,
        slowdown: f64,
        turn_tokens: &TurnTokens,
    ) -> Result<Vec<(Side, Sample)>, WorkerError> {
        let lane = |side| Lane { side, slowdown: if side == Side::Head { slowdown } else { 0.0 } };
        let lanes = [first, first.other()].map(lane);
        let samples = match turn_tokens.get(&case.id) {
            Some(&tokens) => self.in_turns(case.id, tokens, &lanes)?,
            None => lanes.iter().map(|lane| self.whole(case, *lane)).collect::<Result<_, _>>()?,
        };
        Ok(lanes.iter().map(|lane| lane.side).zip(samples).collect())
    }

    /// One generation of each lane, in turns of so many tokens, in the order of `lanes`.
    fn in_turns(&mut self, case: Case, tokens: usize, lanes: &[Lane]) -> Result<Vec<Sample>, WorkerError> {
        let mut tokens_ns = vec![Vec::new(); lanes.len()];
        let turns = case.output_tokens().div_ceil(tokens);
        for turn in 0..turns {
            for place in 0..lanes.len() {
                let at = if turn % 2 == 0 { place } else { lanes.len() - 1 - place };
                let Lane { side, slowdown } = lanes[at];
                let steps_ns = self.client(side).turn(case, tokens, slowdown).map_err(|error| error.of(side.name()))?;
                let expected = tokens.min(case.output_tokens() - turn * tokens);
                if steps_ns.len() != expected {
                    let text = format!("{}: {case}: {} tokens instead of {expected}", side.name(), steps_ns.len());
                    return Err(WorkerError::Protocol(text));
                }
                for step_ns in steps_ns {
                    let before = tokens_ns[at].last().copied().unwrap_or(0_u64);
                    tokens_ns[at].push(before.saturating_add(step_ns));
                }
            }
        }
        tokens_ns
            .into_iter()
            .zip(lanes)
            .map(|(tokens_ns, lane)| Sample::of_tokens(tokens_ns, case, lane.side))
            .collect()
    }

    /// One sample. A side that cannot time several iterations together is asked for as many single ones, and so is the other.
    fn whole(&mut self, case: &PairedCase, lane: Lane) -> Result<Sample, WorkerError> {
        let Lane { side, slowdown } = lane;
        let (count, iterations) = if self.can(Capability::Iterations) {
            (1, case.iterations_per_sample)
        } else {
            (case.iterations_per_sample, 1)
        };
        let sampling = Sampling { count, iterations, warm_up: case.warm_up, slowdown };
        let samples = self.client(side).sample_as(case.id, sampling);
        let mut samples = samples.map_err(|error| error.of(side.name()))?.samples_ns;
        if case.id.phase() == Phase::Generate && case.iterations_per_sample == 1 {
            return Sample::of_tokens(samples.pop().unwrap_or_default(), case.id, side);
        }
        let sum_ns = samples.iter().filter_map(|sample| sample.last()).fold(0_u64, |sum, ns| sum.saturating_add(*ns));
        // A bench may take less than a step of the clock.
        let sum_ns = if case.id.phase() == Phase::Bench { sum_ns.max(1) } else { sum_ns };
        Ok(Sample { ns: positive(sum_ns, case.id, side)?, tokens_ns: None })
    }

    pub fn client(&mut self, side: Side) -> &mut Client<'a> {
        match side {
            Side::Base => &mut self.base,
            Side::Head => &mut self.head,
        }
    }
}

fn positive(ns: u64, case: Case, side: Side) -> Result<u64, WorkerError> {
    if ns == 0 {
        let text = format!("{}: an iteration of {case} took no time; mend the worker's clock", side.name());
        return Err(WorkerError::Protocol(text));
    }
    Ok(ns)
}
