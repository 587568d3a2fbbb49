//! Two processes in turn.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, ensure};

use super::Limits;
use super::order::Order;
use crate::case::{Case, Phase};
use crate::receipt::{BlockCase, PairedCase, PowerCase, Side, Stretched};
use crate::worker::{Client, Interrupted};

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
        let lane = |side| Lane { side, slowdown: 0.0 };
        for pair in 0..case.pairs {
            let first = if pair % 2 == 0 { ran_first } else { ran_first.other() };
            let times_ns = self.iterations(case.id, &[lane(first), lane(first.other())], limits, cancelled)?;
            let (base_ns, head_ns) = if first == Side::Base { (0, 1) } else { (1, 0) };
            record.base_ns.push(times_ns[base_ns]);
            record.head_ns.push(times_ns[head_ns]);
        }
        Ok(record)
    }

    /// As [`measure`](Self::measure), with one head iteration for each slowdown beside each of base's, in a drawn order; a
    /// generation has a base iteration of its own for each.
    pub fn measure_slowed(
        &mut self,
        case: &PairedCase,
        slowdowns: &[f64],
        order: &mut Order,
        limits: &Limits,
        cancelled: &AtomicBool,
    ) -> Result<PowerCase> {
        let slowed = slowdowns.iter();
        let slowed = slowed.map(|&slowdown| Stretched { slowdown, base_ns: Vec::new(), head_ns: Vec::new() }).collect();
        let mut record = PowerCase { id: case.id, slowed };
        // A generation cannot be interleaved with another one of the same process: it has one sequence.
        let one_at_a_time = case.id.phase() == Phase::Generate;
        for _ in 0..case.pairs {
            let drawn = order.shuffled(&(0..slowdowns.len()).collect::<Vec<_>>());
            if one_at_a_time {
                for at in drawn {
                    let lanes =
                        [Lane { side: Side::Base, slowdown: 0.0 }, Lane { side: Side::Head, slowdown: slowdowns[at] }];
                    let times_ns = self.iterations(case.id, &lanes, limits, cancelled)?;
                    record.slowed[at].base_ns.push(times_ns[0]);
                    record.slowed[at].head_ns.push(times_ns[1]);
                }
                continue;
            }
            let mut lanes: Vec<Lane> =
                drawn.iter().map(|&at| Lane { side: Side::Head, slowdown: slowdowns[at] }).collect();
            let place = order.shuffled(&(0..=lanes.len()).collect::<Vec<_>>())[0];
            lanes.insert(place, Lane { side: Side::Base, slowdown: 0.0 });
            let times_ns = self.iterations(case.id, &lanes, limits, cancelled)?;
            for (lane, at) in (0..lanes.len()).filter(|lane| *lane != place).zip(drawn) {
                record.slowed[at].base_ns.push(times_ns[place]);
                record.slowed[at].head_ns.push(times_ns[lane]);
            }
        }
        Ok(record)
    }

    /// One iteration of each lane, nanoseconds, in the order of `lanes`: one after the other, or in turns where an iteration
    /// can be divided.
    fn iterations(&mut self, case: Case, lanes: &[Lane], limits: &Limits, cancelled: &AtomicBool) -> Result<Vec<u64>> {
        let Some(&tokens) = limits.turn_tokens.get(&case) else {
            return lanes.iter().map(|lane| self.whole(case, *lane, cancelled)).collect();
        };
        let mut sums_ns = vec![0; lanes.len()];
        let turns = case.output_tokens().div_ceil(tokens);
        for turn in 0..turns {
            let mut order: Vec<usize> = (0..lanes.len()).collect();
            if turn % 2 == 1 {
                order.reverse();
            }
            for at in order {
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
                sums_ns[at] = steps_ns.iter().fold(sums_ns[at], |sum: u64, step| sum.saturating_add(*step));
            }
        }
        sums_ns.iter().zip(lanes).map(|(ns, lane)| positive(*ns, case, lane.side)).collect()
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
