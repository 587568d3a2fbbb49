//! Two processes in turn.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, ensure};

use super::Limits;
use crate::receipt::{BlockCase, PairedCase, PowerCase, Side, Stretched};
use infergate::case::Case;
use infergate::worker::{Client, Interrupted};

/// A fresh process of each side.
pub struct Pair {
    /// What is compared with.
    pub base: Client,
    /// What is judged.
    pub head: Client,
}

/// One iteration of one contestant: a side, and how much it is slowed.
#[derive(Debug, Clone, Copy)]
struct Lane {
    side: Side,
    slowdown: f64,
}

impl Pair {
    /// The pairs of one case; who runs first changes from pair to pair and from turn to turn.
    pub fn measure(
        &mut self,
        case: &PairedCase,
        ran_first: Side,
        limits: &Limits,
        cancelled: &AtomicBool,
    ) -> Result<BlockCase> {
        let mut record = BlockCase { id: case.id, base_ns: Vec::new(), head_ns: Vec::new() };
        for pair in 0..case.pairs {
            let first = if pair % 2 == 0 { ran_first } else { ran_first.other() };
            let (base_ns, head_ns) = self.pair(case.id, first, 0.0, limits, cancelled)?;
            record.base_ns.push(base_ns);
            record.head_ns.push(head_ns);
        }
        Ok(record)
    }

    /// As [`measure`](Self::measure), with head slowed by each of `slowdowns`, and as many pairs for each. Who runs first
    /// changes from pair to pair as there: a process that follows itself finds its data in the caches.
    pub fn measure_slowed(
        &mut self,
        case: &PairedCase,
        ran_first: Side,
        slowdowns: &[f64],
        limits: &Limits,
        cancelled: &AtomicBool,
    ) -> Result<PowerCase> {
        let slowed = slowdowns.iter();
        let slowed = slowed.map(|&slowdown| Stretched { slowdown, base_ns: Vec::new(), head_ns: Vec::new() }).collect();
        let mut record = PowerCase { id: case.id, slowed };
        for pair in 0..case.pairs {
            for (at, slowed) in record.slowed.iter_mut().enumerate() {
                let first = if (pair + at) % 2 == 0 { ran_first } else { ran_first.other() };
                let (base_ns, head_ns) = self.pair(case.id, first, slowed.slowdown, limits, cancelled)?;
                slowed.base_ns.push(base_ns);
                slowed.head_ns.push(head_ns);
            }
        }
        Ok(record)
    }

    /// One iteration of base and one of head, slowed by `slowdown`, nanoseconds: base's, then head's, whoever ran `first`.
    fn pair(
        &mut self,
        case: Case,
        first: Side,
        slowdown: f64,
        limits: &Limits,
        cancelled: &AtomicBool,
    ) -> Result<(u64, u64)> {
        let lane = |side| Lane { side, slowdown: if side == Side::Head { slowdown } else { 0.0 } };
        let [one_ns, two_ns] = self.iterations(case, [lane(first), lane(first.other())], limits, cancelled)?;
        Ok(if first == Side::Base { (one_ns, two_ns) } else { (two_ns, one_ns) })
    }

    /// One iteration of each lane, nanoseconds, in the order of `lanes`: one after the other, or in turns where an iteration
    /// can be divided.
    fn iterations(
        &mut self,
        case: Case,
        lanes: [Lane; 2],
        limits: &Limits,
        cancelled: &AtomicBool,
    ) -> Result<[u64; 2]> {
        let Some(&tokens) = limits.turn_tokens.get(&case) else {
            return Ok([self.whole(case, lanes[0], cancelled)?, self.whole(case, lanes[1], cancelled)?]);
        };
        let mut sums_ns = [0_u64; 2];
        let turns = case.output_tokens().div_ceil(tokens);
        for turn in 0..turns {
            for at in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                ensure_not(cancelled)?;
                let Lane { side, slowdown } = lanes[at];
                let steps_ns = self.side(side).turn(case, tokens, slowdown).with_context(|| side.name().to_owned())?;
                let expected = tokens.min(case.output_tokens() - turn * tokens);
                ensure!(
                    steps_ns.len() == expected,
                    "{}: {case}: {} tokens instead of {expected}",
                    side.name(),
                    steps_ns.len()
                );
                sums_ns[at] = steps_ns.iter().fold(sums_ns[at], |sum, step| sum.saturating_add(*step));
            }
        }
        Ok([positive(sums_ns[0], case, lanes[0].side)?, positive(sums_ns[1], case, lanes[1].side)?])
    }

    fn whole(&mut self, case: Case, lane: Lane, cancelled: &AtomicBool) -> Result<u64> {
        ensure_not(cancelled)?;
        let Lane { side, slowdown } = lane;
        let samples = self.side(side).sample_slowed(case, 1, slowdown).with_context(|| side.name().to_owned())?;
        let ns = samples.times_ns().first().copied().unwrap_or(0);
        positive(ns, case, side)
    }

    fn side(&mut self, side: Side) -> &mut Client {
        match side {
            Side::Base => &mut self.base,
            Side::Head => &mut self.head,
        }
    }
}

fn positive(ns: u64, case: Case, side: Side) -> Result<u64> {
    if ns == 0 {
        return Err(anyhow!("{}: an iteration of {case} took no time; mend the worker's clock", side.name()));
    }
    Ok(ns)
}

/// Ends what is under way when the user wants it.
pub fn ensure_not(cancelled: &AtomicBool) -> Result<()> {
    if cancelled.load(Ordering::Relaxed) { Err(Interrupted::by_user().into()) } else { Ok(()) }
}
