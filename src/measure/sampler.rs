//! One timed iteration after the other, or a generation in turns with another process.

use anyhow::{Result, ensure};

use super::{Prepared, first_difference, unrepeatable};
use crate::case::{Case, Phase};
use crate::clock::Clock;
use crate::engine::{Engine, TokenId};

/// An engine that never rewinds is started anew after this many steps of a decode case, so that the context stays near P.
const MAX_DRIFT_TOKENS: usize = 16;

/// Takes samples of one prepared case after another. It remembers where it left the engine, which nothing else may use in
/// between; cache resets and prompt set-up happen between the timed regions.
#[derive(Debug, Default)]
pub struct Sampler {
    /// The case the rest belongs to.
    case: Option<Case>,
    /// Decode only: steps since the engine stood at the prompt's end; `None` when it does not stand there.
    drift_tokens: Option<usize>,
    /// What the engine said since the prompt.
    tokens: Vec<TokenId>,
}

impl Sampler {
    /// One iteration of `prepared` on `engine`: `t_k - t_0` in nanoseconds for each token of the timed region (one for
    /// prefill and decode, N for generate).
    ///
    /// # Errors
    /// When the engine fails, or says something else than when it was prepared.
    pub fn sample(&mut self, engine: &mut dyn Engine, clock: &dyn Clock, prepared: &Prepared) -> Result<Vec<u64>> {
        self.turn_to(prepared.case);
        match prepared.case.phase() {
            Phase::Prefill | Phase::Generate => {
                self.tokens.clear();
                let steps_ns = self.advance(engine, clock, prepared, prepared.case.output_tokens())?;
                Ok(steps_ns.iter().scan(0, |sum, step| Some(add(sum, *step))).collect())
            }
            Phase::Decode => self.sample_step(engine, clock, prepared),
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
        ensure!(tokens > 0, "{}: a turn of zero tokens was asked for; ask for at least one", prepared.case);
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
            ensure_same_output(prepared, &output)?;
        }
        Ok(step_ns)
    }

    fn turn_to(&mut self, case: Case) {
        if self.case != Some(case) {
            *self = Self { case: Some(case), ..Self::default() };
        }
    }

    fn sample_step(&mut self, engine: &mut dyn Engine, clock: &dyn Clock, prepared: &Prepared) -> Result<Vec<u64>> {
        self.stand_at_prompt_end(engine, prepared)?;
        let start_ns = clock.now_ns();
        let token = engine.next()?;
        let step_ns = clock.now_ns() - start_ns;
        // Only the step straight after the prompt has a known token; later ones belong to an engine that cannot rewind.
        if self.drift_tokens == Some(0) {
            self.tokens.truncate(1);
            self.tokens.push(token);
            ensure_same_output(prepared, &self.tokens)?;
        }
        self.drift_tokens = self.drift_tokens.map(|steps| steps + 1);
        Ok(vec![step_ns])
    }

    fn stand_at_prompt_end(&mut self, engine: &mut dyn Engine, prepared: &Prepared) -> Result<()> {
        if let Some(drift) = self.drift_tokens {
            if engine.rewind()? {
                self.drift_tokens = Some(0);
                return Ok(());
            }
            let room = engine.info().context_tokens.saturating_sub(prepared.prompt.len() + 2);
            if drift < MAX_DRIFT_TOKENS.min(room) {
                return Ok(());
            }
        }
        self.tokens.clear();
        self.tokens.push(engine.start(&prepared.prompt)?);
        self.drift_tokens = Some(0);
        Ok(())
    }
}

fn add(sum: &mut u64, step: u64) -> u64 {
    *sum += step;
    *sum
}

/// Refuses an output that differs from the prepared one.
pub(crate) fn ensure_same_output(prepared: &Prepared, tokens: &[TokenId]) -> Result<()> {
    match first_difference(&prepared.output.ids, tokens) {
        Some(at) => Err(unrepeatable(prepared.case, at)),
        None => Ok(()),
    }
}
