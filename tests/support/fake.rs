//! [`FakeEngine`]: scripted delays on a [`VirtualClock`], so that everything above an engine is tested without waiting.

#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use infergate::engine::{Cost, Engine, EngineInfo, Step, TokenId, ensure_fits};
use infergate_core::clock::Clock;

/// A clock that moves only when told to. Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock {
    now_ns: Arc<AtomicU64>,
}

impl VirtualClock {
    /// Moves time forward by `by_ns` nanoseconds.
    pub fn advance_ns(&self, by_ns: u64) {
        self.now_ns.fetch_add(by_ns, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn spin_until_ns(&self, ns: u64) {
        self.now_ns.fetch_max(ns, Ordering::Relaxed);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

const VOCAB_TOKENS: TokenId = 50_000;
/// From each of the best logits to the next.
const MARGIN: f32 = 0.5;

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
    /// Whether [`Engine::force`] works.
    pub forces: bool,
    /// Gives logits, each of the best off by up to so much; the best stays the best up to 0.05. `None`: gives none.
    pub logits_off_by: Option<f32>,
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
            forces: true,
            logits_off_by: None,
        }
    }
}

/// A deterministic engine whose time passes on a [`VirtualClock`]. Its next token is a hash of all tokens before it.
#[derive(Debug, Clone)]
pub struct FakeEngine {
    script: FakeScript,
    clock: VirtualClock,
    /// A hash of the tokens up to each one.
    cache: Vec<u64>,
    prompt_tokens: usize,
    /// What the next step appends.
    pending: Option<TokenId>,
    last: Option<TokenId>,
    first: Option<TokenId>,
    starts: u64,
    steps: u64,
}

impl FakeEngine {
    /// A fake that moves `clock` as `script` says.
    pub fn new(script: FakeScript, clock: VirtualClock) -> Self {
        let (pending, last, first) = (None, None, None);
        Self { script, clock, cache: Vec::new(), prompt_tokens: 0, pending, last, first, starts: 0, steps: 0 }
    }

    fn append(&mut self, token: TokenId) {
        let salt = self.script.output_salt + if self.script.unrepeatable { self.starts } else { 0 };
        let before = self.cache.last().copied().unwrap_or(0xcbf2_9ce4_8422_2325 ^ salt);
        self.cache.push((before ^ u64::from(token)).wrapping_mul(0x0100_0000_01b3));
    }

    fn predict(&self) -> TokenId {
        let hash = self.cache.last().expect("no prompt is empty");
        u32::try_from(hash % u64::from(VOCAB_TOKENS)).expect("below the vocabulary")
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
            vocab_tokens: VOCAB_TOKENS as usize,
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
        prompt.iter().for_each(|token| self.append(*token));
        self.prompt_tokens = self.cache.len();
        let prefill_ns = self.script.prefill_ns_per_token * prompt.len() as u64;
        self.clock.advance_ns(prefill_ns + self.script.first_sample_ns);
        let token = self.predict();
        (self.first, self.last, self.pending) = (Some(token), Some(token), Some(token));
        Ok(token)
    }

    fn next(&mut self) -> Result<TokenId> {
        let Some(pending) = self.pending else { anyhow::bail!("no sequence was started; call start first") };
        ensure_fits(self.cache.len() + 2, self.script.context_tokens)?;
        ensure!(self.script.fails_at_step != Some(self.steps), "the fake engine failed at step {}", self.steps);
        self.append(pending);
        let jitter = match self.script.jitter_ns.len() {
            0 => 0,
            len => self.script.jitter_ns[usize::try_from(self.steps)? % len],
        };
        self.steps += 1;
        self.clock.advance_ns(self.script.step_ns + jitter);
        let token = self.predict();
        (self.last, self.pending) = (Some(token), Some(token));
        Ok(token)
    }

    fn rewind(&mut self) -> Result<bool> {
        if self.script.rewinds && self.first.is_some() {
            self.cache.truncate(self.prompt_tokens);
            (self.last, self.pending) = (self.first, self.first);
            return Ok(true);
        }
        Ok(false)
    }

    fn last_step(&self) -> Option<Step> {
        let sample_ns = Some(self.script.first_sample_ns);
        self.last.map(|token| Step { token, margin: Some(MARGIN), sample_ns })
    }

    fn logits(&self, out: &mut Vec<f32>) -> bool {
        let (Some(off_by), Some(best)) = (self.script.logits_off_by, self.last) else { return false };
        out.clear();
        out.resize(VOCAB_TOKENS as usize, 0.0);
        let (mut token, mut logit) = (best, 10.0);
        for place in 0..8_u8 {
            out[token as usize] = logit + off_by * f32::from(place) / 7.0;
            token = (token + 7919) % VOCAB_TOKENS;
            logit -= MARGIN;
        }
        true
    }

    fn force(&mut self, token: TokenId) -> Result<bool> {
        if self.script.forces {
            self.pending = Some(token);
        }
        Ok(self.script.forces)
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
