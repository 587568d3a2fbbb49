//! Two processes in turn, or three.

use super::TurnTokens;
use crate::receipt::{BlockCase, PairedCase, PowerCase, Side, Stretched};
use infergate_core::case::{Case, Phase};
use infergate_core::worker::{Capability, Client, Sampling, WorkerError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Base,
    Head,
    Anchor,
}

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Head => "head",
            Self::Anchor => "anchor",
        }
    }
}

impl From<Side> for Who {
    fn from(side: Side) -> Self {
        match side {
            Side::Base => Self::Base,
            Side::Head => Self::Head,
        }
    }
}

/// All of a block in the order they start or run: `first`, the other side, and the anchor at `anchor_place` among them. Where
/// `first` changes from one to the next and the place moves on by one, six in a row hold each order of three once.
pub fn order(first: Side, anchor_place: Option<usize>) -> Vec<Who> {
    let mut order = vec![first.into(), first.other().into()];
    if let Some(place) = anchor_place {
        order.insert(place % 3, Who::Anchor);
    }
    order
}

/// A fresh process of each side.
pub struct Pair<'a> {
    pub base: Client<'a>,
    pub head: Client<'a>,
    /// What head may not drift away from, where there is one.
    pub anchor: Option<Client<'a>>,
    /// Benches that the anchor is not asked for.
    pub without_anchor: Vec<Case>,
}

/// One sample of one contestant: a side, and how much it is slowed.
#[derive(Debug, Clone, Copy)]
struct Lane {
    who: Who,
    slowdown: f64,
}

struct Sample {
    /// The whole of it, nanoseconds.
    ns: u64,
    /// `t_k - t_0` of each token of a generation, nanoseconds.
    tokens_ns: Option<Vec<u64>>,
}

impl Sample {
    fn of_tokens(tokens_ns: Vec<u64>, case: Case, who: Who) -> Result<Self, WorkerError> {
        let ns = positive(tokens_ns.last().copied().unwrap_or(0), case, who)?;
        Ok(Self { ns, tokens_ns: Some(tokens_ns) })
    }
}

impl<'a> Pair<'a> {
    /// Whether both sides can.
    pub fn can(&self, capability: Capability) -> bool {
        let anchor_can = self.anchor.as_ref().is_none_or(|anchor| anchor.can(capability));
        self.base.can(capability) && self.head.can(capability) && anchor_can
    }

    /// Whether the anchor is asked for a case, too.
    pub fn has_anchor(&self, case: Case) -> bool {
        self.anchor.is_some() && !self.without_anchor.contains(&case)
    }

    /// The pairs of one case; who runs first changes from pair to pair and from turn to turn, and the
    /// anchor's place with it.
    pub fn measure(
        &mut self,
        case: &PairedCase,
        ran_first: Side,
        anchor_place: usize,
        turn_tokens: &TurnTokens,
    ) -> Result<BlockCase, WorkerError> {
        let mut record = BlockCase::new(case.id, Vec::new(), Vec::new());
        let has_anchor = self.has_anchor(case.id);
        for pair in 0..case.pairs {
            let first = if pair % 2 == 0 { ran_first } else { ran_first.other() };
            let order = order(first, has_anchor.then_some(anchor_place + pair));
            for (who, sample) in self.samples(case, &order, 0.0, turn_tokens)? {
                match who {
                    Who::Base => {
                        record.base_ns.push(sample.ns);
                        record.base_tokens_ns.extend(sample.tokens_ns);
                    }
                    Who::Head => {
                        record.head_ns.push(sample.ns);
                        record.head_tokens_ns.extend(sample.tokens_ns);
                    }
                    Who::Anchor => record.anchor_ns.push(sample.ns),
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
                for (who, sample) in self.samples(case, &order(first, None), slowed.slowdown, turn_tokens)? {
                    if who == Who::Head { &mut slowed.head_ns } else { &mut slowed.base_ns }.push(sample.ns);
                }
            }
        }
        Ok(record)
    }

    /// One sample of each, in the order asked for; head is slowed by `slowdown`.
    fn samples(
        &mut self,
        case: &PairedCase,
        order: &[Who],
        slowdown: f64,
        turn_tokens: &TurnTokens,
    ) -> Result<Vec<(Who, Sample)>, WorkerError> {
        let lane = |&who: &Who| Lane { who, slowdown: if who == Who::Head { slowdown } else { 0.0 } };
        let lanes: Vec<Lane> = order.iter().map(lane).collect();
        let samples = match turn_tokens.get(&case.id) {
            Some(&tokens) => self.in_turns(case.id, tokens, &lanes)?,
            None => lanes.iter().map(|lane| self.whole(case, *lane)).collect::<Result<_, _>>()?,
        };
        Ok(order.iter().copied().zip(samples).collect())
    }

    /// One generation of each lane, in turns of so many tokens, in the order of `lanes`.
    fn in_turns(&mut self, case: Case, tokens: usize, lanes: &[Lane]) -> Result<Vec<Sample>, WorkerError> {
        let mut tokens_ns = vec![Vec::new(); lanes.len()];
        let turns = case.output_tokens().div_ceil(tokens);
        for turn in 0..turns {
            for place in 0..lanes.len() {
                let at = if turn % 2 == 0 { place } else { lanes.len() - 1 - place };
                let Lane { who, slowdown } = lanes[at];
                let steps_ns = self.client(who)?.turn(case, tokens, slowdown).map_err(|error| error.of(who.name()))?;
                let expected = tokens.min(case.output_tokens() - turn * tokens);
                if steps_ns.len() != expected {
                    let text = format!("{}: {case}: {} tokens instead of {expected}", who.name(), steps_ns.len());
                    return Err(WorkerError::Protocol(text));
                }
                for step_ns in steps_ns {
                    let before = tokens_ns[at].last().copied().unwrap_or(0_u64);
                    tokens_ns[at].push(before.saturating_add(step_ns));
                }
            }
        }
        tokens_ns.into_iter().zip(lanes).map(|(tokens_ns, lane)| Sample::of_tokens(tokens_ns, case, lane.who)).collect()
    }

    /// One sample. A side that cannot time several iterations together is asked for as many single ones, and so is the other.
    fn whole(&mut self, case: &PairedCase, lane: Lane) -> Result<Sample, WorkerError> {
        let Lane { who, slowdown } = lane;
        let (count, iterations) = if self.can(Capability::Iterations) {
            (1, case.iterations_per_sample)
        } else {
            (case.iterations_per_sample, 1)
        };
        let sampling = Sampling { count, iterations, warm_up: case.warm_up, slowdown };
        let samples = self.client(who)?.sample_as(case.id, sampling);
        let mut samples = samples.map_err(|error| error.of(who.name()))?.samples_ns;
        if case.id.phase() == Phase::Generate && case.iterations_per_sample == 1 {
            return Sample::of_tokens(samples.pop().unwrap_or_default(), case.id, who);
        }
        let sum_ns = samples.iter().filter_map(|sample| sample.last()).fold(0_u64, |sum, ns| sum.saturating_add(*ns));
        // A bench may take less than a step of the clock.
        let sum_ns = if case.id.phase() == Phase::Bench { sum_ns.max(1) } else { sum_ns };
        Ok(Sample { ns: positive(sum_ns, case.id, who)?, tokens_ns: None })
    }

    pub fn client(&mut self, who: Who) -> Result<&mut Client<'a>, WorkerError> {
        match who {
            Who::Base => Ok(&mut self.base),
            Who::Head => Ok(&mut self.head),
            Who::Anchor => {
                self.anchor.as_mut().ok_or_else(|| WorkerError::Protocol("anchor: no process was started".into()))
            }
        }
    }
}

fn positive(ns: u64, case: Case, who: Who) -> Result<u64, WorkerError> {
    if ns == 0 {
        let text = format!("{}: an iteration of {case} took no time; mend the worker's clock", who.name());
        return Err(WorkerError::Protocol(text));
    }
    Ok(ns)
}
