//! [`Stretched`]: an engine made slower by a known share, to find out what a gate notices.

use anyhow::Result;

use super::{Cost, Device, Engine, EngineInfo, Step, TokenId};
use crate::clock::Clock;

/// Another engine whose every [`start`](Engine::start) and [`next`](Engine::next) takes longer by a fraction of itself, spent
/// spinning. No number is edited: the time really passes, under the noise of the moment.
pub struct Stretched<'a> {
    engine: &'a mut dyn Engine,
    clock: &'a dyn Clock,
    slowdown: f64,
}

impl<'a> Stretched<'a> {
    /// `slowdown` is a fraction: 0.05 makes each step 5 % longer.
    pub fn new(engine: &'a mut dyn Engine, clock: &'a dyn Clock, slowdown: f64) -> Self {
        Self { engine, clock, slowdown }
    }

    fn stretch<T>(&mut self, step: impl FnOnce(&mut dyn Engine) -> Result<T>) -> Result<T> {
        let start_ns = self.clock.now_ns();
        let value = step(self.engine)?;
        let end_ns = self.clock.now_ns();
        let extra_ns = (end_ns - start_ns) as f64 * self.slowdown;
        self.clock.spin_until_ns(end_ns + extra_ns.round() as u64);
        Ok(value)
    }
}

impl Engine for Stretched<'_> {
    fn info(&self) -> EngineInfo {
        self.engine.info()
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.stretch(|engine| engine.start(prompt))
    }

    fn next(&mut self) -> Result<TokenId> {
        self.stretch(|engine| engine.next())
    }

    fn rewind(&mut self) -> Result<bool> {
        self.engine.rewind()
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        self.engine.tokenize(text)
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        self.engine.detokenize(tokens)
    }

    fn last_step(&self) -> Option<Step> {
        self.engine.last_step()
    }

    fn logits(&self, out: &mut Vec<f32>) -> bool {
        self.engine.logits(out)
    }

    fn force(&mut self, token: TokenId) -> Result<bool> {
        self.engine.force(token)
    }

    fn devices(&self) -> Vec<Device> {
        self.engine.devices()
    }

    fn cost(&self) -> Option<Cost> {
        self.engine.cost()
    }
}
