//! [`FakeEngine`]: scripted delays on a virtual clock, so that everything above an engine is tested without waiting.

use anyhow::{Result, ensure};

use super::{Cost, Engine, EngineInfo, TokenId, ensure_fits};
use crate::clock::VirtualClock;

/// The delays and faults of a [`FakeEngine`].
#[derive(Debug, Clone, PartialEq)]
pub struct FakeScript {
    /// Nanoseconds to read one prompt token.
    pub prefill_ns_per_token: u64,
    /// Nanoseconds of every decode step.
    pub step_ns: u64,
    /// Added to step `i` (counted over the engine's life) is `jitter_ns[i % len]`.
    pub jitter_ns: Vec<u64>,
    /// Nanoseconds to turn the prompt's logits into the first token; part of the prefill's time.
    pub first_sample_ns: u64,
    /// The model's context.
    pub context_tokens: usize,
    /// Added to every output token's id: two fakes that differ here differ in output.
    pub output_salt: u64,
    /// Breaks determinism: every start gives other tokens.
    pub unrepeatable: bool,
    /// Breaks [`Engine::start`]: the cache of the run before shows through.
    pub leaks_cache: bool,
    /// Fails at this step (counted over the engine's life).
    pub fails_at_step: Option<u64>,
    /// Whether [`Engine::rewind`] works.
    pub rewinds: bool,
}

impl Default for FakeScript {
    fn default() -> Self {
        Self {
            prefill_ns_per_token: 1_000_000,
            step_ns: 20_000_000,
            jitter_ns: Vec::new(),
            first_sample_ns: 50_000,
            context_tokens: 1024,
            output_salt: 0,
            unrepeatable: false,
            leaks_cache: false,
            fails_at_step: None,
            rewinds: true,
        }
    }
}

/// A deterministic engine whose time passes on a [`VirtualClock`]. Its next token is a hash of all tokens before it.
#[derive(Debug, Clone)]
pub struct FakeEngine {
    script: FakeScript,
    clock: VirtualClock,
    cache: Vec<TokenId>,
    prompt_tokens: usize,
    last: Option<TokenId>,
    first: Option<TokenId>,
    starts: u64,
    steps: u64,
}

impl FakeEngine {
    /// A fake that moves `clock` as `script` says.
    pub fn new(script: FakeScript, clock: VirtualClock) -> Self {
        Self { script, clock, cache: Vec::new(), prompt_tokens: 0, last: None, first: None, starts: 0, steps: 0 }
    }

    fn predict(&self) -> TokenId {
        let salt = self.script.output_salt + if self.script.unrepeatable { self.starts } else { 0 };
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ salt;
        for token in &self.cache {
            hash = (hash ^ u64::from(*token)).wrapping_mul(0x0100_0000_01b3);
        }
        u32::try_from(hash % 50_000).expect("below 50,000")
    }
}

impl Engine for FakeEngine {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "fake".into(),
            version: "1".into(),
            model: "fake".into(),
            dtype: "none".into(),
            context_tokens: self.script.context_tokens,
            vocab_tokens: 50_000,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure!(!prompt.is_empty(), "the prompt has no tokens; give at least one");
        ensure_fits(prompt.len() + 1, self.script.context_tokens)?;
        self.starts += 1;
        if !self.script.leaks_cache {
            self.cache.clear();
        }
        self.cache.extend_from_slice(prompt);
        self.prompt_tokens = self.cache.len();
        let prefill_ns = self.script.prefill_ns_per_token * prompt.len() as u64;
        self.clock.advance_ns(prefill_ns + self.script.first_sample_ns);
        let token = self.predict();
        self.first = Some(token);
        self.last = Some(token);
        Ok(token)
    }

    fn next(&mut self) -> Result<TokenId> {
        let Some(last) = self.last else { anyhow::bail!("no sequence was started; call start first") };
        ensure_fits(self.cache.len() + 2, self.script.context_tokens)?;
        ensure!(self.script.fails_at_step != Some(self.steps), "the fake engine failed at step {}", self.steps);
        self.cache.push(last);
        let jitter = match self.script.jitter_ns.len() {
            0 => 0,
            len => self.script.jitter_ns[usize::try_from(self.steps)? % len],
        };
        self.steps += 1;
        self.clock.advance_ns(self.script.step_ns + jitter);
        let token = self.predict();
        self.last = Some(token);
        Ok(token)
    }

    fn rewind(&mut self) -> Result<bool> {
        if self.script.rewinds && self.first.is_some() {
            self.cache.truncate(self.prompt_tokens);
            self.last = self.first;
            return Ok(true);
        }
        Ok(false)
    }

    fn top2_margin(&self) -> Option<f32> {
        self.last.map(|_| 0.5)
    }

    fn first_sample_ns(&self) -> Option<u64> {
        self.first.map(|_| self.script.first_sample_ns)
    }

    fn cost(&self) -> Option<Cost> {
        Some(Cost {
            decode_bytes_fixed: 1e8,
            decode_bytes_per_context_token: 1e4,
            prefill_flops_per_token: 1e8,
            prefill_flops_per_pair: 1e4,
        })
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Self::new(self.script.clone(), self.clock.clone())))
    }
}
