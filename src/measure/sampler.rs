//! One timed sample after the other, or a generation in turns with another process.

use anyhow::{Result, bail, ensure};

use super::{Prepared, ensure_same, unrepeatable, untimed};
use crate::engine::{Engine, Pacing, TokenId};
use infergate_core::case::{Case, Phase};
use infergate_core::clock::Clock;
use infergate_core::iterations::{LEAST_SAMPLE_NS, LOOK_ITERATIONS, LOOKS, SURELY_SLOW_NS, fitting_iterations};

/// So many steps of a decode case may follow each other before the engine stands at the prompt's end again, so that the context
/// stays near P: those that are timed together, and all of an engine that never rewinds.
const MAX_DRIFT_TOKENS: usize = 16;

/// Iterations that make a sample of `prepared` on `engine`: one, unless that is short against reading the clock.
///
/// # Errors
/// As [`Sampler::sample`].
pub fn iterations_per_sample(engine: &mut dyn Engine, clock: &dyn Clock, prepared: &Prepared) -> Result<usize> {
    let mut sampler = Sampler::default();
    let mut iteration_ns = |iterations: usize| -> Result<f64> {
        let sample = sampler.sample(engine, clock, prepared, iterations)?;
        Ok(sample.last().copied().unwrap_or(0) as f64 / iterations as f64)
    };
    let mut each_ns = iteration_ns(1)?;
    // One that is interrupted looks slow.
    for _ in 0..LOOKS {
        if (LEAST_SAMPLE_NS..SURELY_SLOW_NS).contains(&each_ns) {
            each_ns = each_ns.min(iteration_ns(1)?);
        }
    }
    if each_ns >= LEAST_SAMPLE_NS {
        return Ok(1);
    }
    Ok(fitting_iterations(iteration_ns(LOOK_ITERATIONS)?))
}

/// Takes samples of one prepared case after another. It remembers where it left the engine, which nothing else may use in
/// between; cache resets and prompt set-up happen between the timed regions.
#[derive(Debug, Default)]
pub struct Sampler {
    /// The case the rest belongs to.
    case: Option<Case>,
    /// Decode only: steps since the engine stood at the prompt's end; `None` when it does not stand there.
    drift_tokens: Option<usize>,
    /// Decode only: what the engine said in the steps after the prompt's first token, as far as it ever went.
    steps: Vec<TokenId>,
    /// What the engine said in the timed region, or since the prompt of a generation.
    tokens: Vec<TokenId>,
}

impl Sampler {
    /// What comes next starts from the beginning of its case: something else used the engine.
    pub fn forget(&mut self) {
        self.case = None;
    }

    /// One sample of `prepared` on `engine`: `t_k - t_0` in nanoseconds for each token of the timed region (one for prefill and
    /// decode, N for generate), each summed over `iterations`.
    ///
    /// A single fast iteration is shorter than reading the clock twice. Of several, prompts are read one straight after the
    /// other, and up to 16 steps of a decode case follow each other, between two looks at the clock; a generation keeps the
    /// time of each token, so the clock is read for each.
    ///
    /// # Errors
    /// When the engine fails, or says something else than when it was prepared.
    pub fn sample(
        &mut self,
        engine: &mut dyn Engine,
        clock: &dyn Clock,
        prepared: &Prepared,
        iterations: usize,
    ) -> Result<Vec<u64>> {
        ensure!(iterations > 0, "{}: a sample of zero iterations was requested; give at least one", prepared.case);
        self.turn_to(prepared.case);
        match prepared.case.phase() {
            Phase::Prefill => self.prompts(engine, clock, prepared, iterations),
            Phase::Decode => self.decode_steps(engine, clock, prepared, iterations),
            Phase::Generate => self.generations(engine, clock, prepared, iterations),
            Phase::Bench => bail!("{}: an engine has no benches; ask for prefill, decode or generate", prepared.case),
        }
    }

    /// Takes up to `tokens` more tokens of one generation and gives the time of each, nanoseconds: the first of a generation
    /// from the hand-over of the prompt, each other one from the token before it, pauses between calls left out. Fewer come
    /// at the end, where the whole output is compared; the next call begins anew.
    ///
    /// Two processes that take turns see the same slow swings of a shared machine; whole generations do not.
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    pub fn advance(
        &mut self,
        engine: &mut dyn Engine,
        clock: &dyn Clock,
        prepared: &Prepared,
        tokens: usize,
    ) -> Result<Vec<u64>> {
        ensure!(tokens > 0, "{}: a turn of zero tokens was requested; give at least one", prepared.case);
        self.turn_to(prepared.case);
        let all = prepared.case.output_tokens();
        let mut step_ns = Vec::with_capacity(tokens.min(all));
        let mut before_ns = clock.now_ns();
        while step_ns.len() < tokens && self.tokens.len() < all {
            let token = if self.tokens.is_empty() { engine.start(&prepared.prompt)? } else { engine.next()? };
            let now_ns = clock.now_ns();
            step_ns.push(now_ns - before_ns);
            before_ns = now_ns;
            self.tokens.push(token);
        }
        if self.tokens.len() == all {
            let output = std::mem::take(&mut self.tokens);
            prepared.ensure_same(&output)?;
        }
        Ok(step_ns)
    }

    fn turn_to(&mut self, case: Case) {
        if self.case != Some(case) {
            *self = Self { case: Some(case), ..Self::default() };
        }
    }

    fn prompts(
        &mut self,
        engine: &mut dyn Engine,
        clock: &dyn Clock,
        prepared: &Prepared,
        iterations: usize,
    ) -> Result<Vec<u64>> {
        self.tokens.clear();
        self.tokens.reserve(iterations);
        let start_ns = clock.now_ns();
        for _ in 0..iterations {
            self.tokens.push(engine.start(&prepared.prompt)?);
        }
        let took_ns = clock.now_ns() - start_ns;
        self.tokens.drain(..).try_for_each(|token| prepared.ensure_same(&[token]))?;
        Ok(vec![took_ns])
    }

    fn generations(
        &mut self,
        engine: &mut dyn Engine,
        clock: &dyn Clock,
        prepared: &Prepared,
        iterations: usize,
    ) -> Result<Vec<u64>> {
        let mut sums_ns = vec![0; prepared.case.output_tokens()];
        for _ in 0..iterations {
            self.tokens.clear();
            let steps_ns = self.advance(engine, clock, prepared, prepared.case.output_tokens())?;
            let mut since_start_ns = 0;
            for (sum_ns, step_ns) in sums_ns.iter_mut().zip(steps_ns) {
                since_start_ns += step_ns;
                *sum_ns += since_start_ns;
            }
        }
        Ok(sums_ns)
    }

    fn decode_steps(
        &mut self,
        engine: &mut dyn Engine,
        clock: &dyn Clock,
        prepared: &Prepared,
        iterations: usize,
    ) -> Result<Vec<u64>> {
        let mut took_ns = 0;
        let mut done = 0;
        // One that goes on by itself may have computed a step while another process had its turn.
        let leads = engine.info().pacing == Pacing::Streaming && most_drift(engine, prepared) > 1;
        while done < iterations {
            let mut drift = untimed(|| self.stand_near_prompt_end(engine, prepared))?;
            if leads {
                self.tokens.clear();
                self.tokens.push(untimed(|| engine.next())?);
                self.ensure_same_steps(prepared, drift)?;
                drift += 1;
            }
            let steps = (most_drift(engine, prepared).max(drift + 1) - drift).min(iterations - done);
            self.tokens.clear();
            self.tokens.reserve(steps);
            let start_ns = clock.now_ns();
            for _ in 0..steps {
                self.tokens.push(engine.next()?);
            }
            took_ns += clock.now_ns() - start_ns;
            self.ensure_same_steps(prepared, drift)?;
            self.drift_tokens = Some(drift + steps);
            done += steps;
        }
        Ok(vec![took_ns])
    }

    /// What was said after `drift` steps must be what was said there before, and first of all what was prepared.
    fn ensure_same_steps(&mut self, prepared: &Prepared, drift: usize) -> Result<()> {
        for (at, token) in (drift..).zip(self.tokens.drain(..)) {
            let known = if at == 0 { prepared.output.ids.get(1) } else { self.steps.get(at) };
            if known.is_some_and(|known| *known != token) {
                return Err(unrepeatable(prepared.case, at + 1));
            }
            if at == self.steps.len() {
                self.steps.push(token);
            }
        }
        Ok(())
    }

    /// Brings the engine to the prompt's end, or leaves it at most [`MAX_DRIFT_TOKENS`] behind where it cannot rewind. Gives the
    /// steps it is behind.
    fn stand_near_prompt_end(&mut self, engine: &mut dyn Engine, prepared: &Prepared) -> Result<usize> {
        if let Some(drift) = self.drift_tokens {
            if engine.rewind()? {
                return Ok(0);
            }
            if drift < most_drift(engine, prepared) {
                return Ok(drift);
            }
        }
        let first = engine.start(&prepared.prompt)?;
        ensure_same(prepared.case, &prepared.output.ids[..1], &[first])?;
        Ok(0)
    }
}

/// Steps that may follow the prompt, one of them even where the context has hardly room.
fn most_drift(engine: &dyn Engine, prepared: &Prepared) -> usize {
    let room = engine.info().context_tokens.saturating_sub(prepared.prompt.len() + 2);
    MAX_DRIFT_TOKENS.min(room)
}
