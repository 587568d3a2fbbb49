//! What an inference engine has to do to be measured: [`Engine`].
//!
//! Three methods are enough: say who you are, start a sequence, give the next token. Everything else has a default that
//! says "I cannot", and whatever depends on it is then reported as missing (`None`), never guessed.

pub mod contract;
pub mod factory;
pub mod fake;
pub mod stretched;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use contract::check_contract;
pub use factory::{EngineFactory, LoadRequest};
pub use fake::FakeEngine;

/// A token's number in the model's vocabulary.
pub type TokenId = u32;

/// One engine with one model loaded and room for one sequence.
///
/// Rules, tested by [`check_contract`]:
/// - Decoding is greedy and ignores end-of-sequence: [`next`](Engine::next) always gives a token while the context has room.
/// - A token counts once its id is on the host: both methods return only when it is.
/// - [`start`](Engine::start) forgets all that came before. Clearing caches belongs to `start`, but an engine may do it
///   lazily; it must not depend on what ran before.
/// - Beyond [`EngineInfo::context_tokens`] both return an error; they never wrap, truncate or panic.
pub trait Engine {
    /// Who this is. Cheap, and the same at every call.
    fn info(&self) -> EngineInfo;

    /// Empties the cache, reads `prompt` (at least one token) and gives the first output token.
    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId>;

    /// Appends the token given last and gives the next one.
    fn next(&mut self) -> Result<TokenId>;

    /// Goes back to the state just after [`start`](Engine::start), so that the next step runs at the prompt's context
    /// again. `Ok(false)`: this engine cannot, and is started anew instead.
    fn rewind(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Text to tokens, without special tokens added. `None`: this model has no tokenizer.
    fn tokenize(&self, _text: &str) -> Result<Option<Vec<TokenId>>> {
        Ok(None)
    }

    /// Tokens to text. `None`: this model has no tokenizer.
    fn detokenize(&self, _tokens: &[TokenId]) -> Result<Option<String>> {
        Ok(None)
    }

    /// How far the two best logits behind the token given last lay apart, in logits. `None`: not known.
    fn top2_margin(&self) -> Option<f32> {
        None
    }

    /// Of the last [`start`](Engine::start), the nanoseconds spent turning logits into the first token.
    fn first_sample_ns(&self) -> Option<u64> {
        None
    }

    /// The work the hardware cannot avoid. `None`: not known, and no fraction of the hardware's limit is given.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// A second sequence over the same weights, for a concurrent user. It starts empty and is independent of this one.
    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        bail!("{} cannot run a second sequence over the same weights", self.info().name)
    }

    /// This engine as one that steps several sequences at once. `None`: one at a time.
    fn as_batch(&mut self) -> Option<&mut dyn BatchEngine> {
        None
    }
}

/// An engine that advances several sequences in one pass over the weights, as a server does.
pub trait BatchEngine {
    /// How many sequences fit at once.
    fn slots(&self) -> usize;

    /// As [`Engine::start`], in slot `slot`; the other slots are untouched.
    fn start_slot(&mut self, slot: usize, prompt: &[TokenId]) -> Result<TokenId>;

    /// As [`Engine::next`] for each of `slots` (distinct, started), in their order.
    fn next_slots(&mut self, slots: &[usize]) -> Result<Vec<TokenId>>;
}

/// Identity of an engine and its model, as it goes into a receipt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EngineInfo {
    /// The engine, for example `candle`.
    pub name: String,
    /// The engine's version.
    pub version: String,
    /// The model's name without local folders: `synthetic:gpt2`, `SmolLM2-135M-Instruct.Q4_1.gguf`, `hf:org/name`.
    pub model: String,
    /// Architecture family: `gpt2`, `llama`, `qwen2`, `qwen3`.
    #[serde(default)]
    pub architecture: Option<String>,
    /// What the weights are computed in: `f32`, `q4_1`.
    pub dtype: String,
    /// Number of weights.
    #[serde(default)]
    pub parameters: Option<u64>,
    /// Bytes of the weights in memory.
    #[serde(default)]
    pub weight_bytes: Option<u64>,
    /// SHA-256 over the weights' file (or over the seed and configuration that made them), hex.
    #[serde(default)]
    pub weights_sha256: Option<String>,
    /// The commit a hub revision was resolved to.
    #[serde(default)]
    pub revision: Option<String>,
    /// Prompt and output together must not exceed this many tokens.
    pub context_tokens: usize,
    /// Tokens are below this number.
    pub vocab_tokens: usize,
    /// Every choice that can change speed or output: threads, GEMM, cache, huge pages...
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// Work that cannot be avoided, for the fraction of the hardware's limit.
///
/// Each is linear in the context: `fixed + per_context_token * context`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Bytes of weights read for one decoded token, whatever the context.
    pub decode_bytes_fixed: f64,
    /// Bytes of KV cache read for one decoded token, per token of context.
    pub decode_bytes_per_context_token: f64,
    /// Floating point operations to read one prompt token, attention excluded.
    pub prefill_flops_per_token: f64,
    /// Floating point operations of causal attention, per pair of prompt tokens (i, j <= i).
    pub prefill_flops_per_pair: f64,
}

impl Cost {
    /// Bytes read to decode one token at a context of `context_tokens`.
    pub fn decode_bytes(&self, context_tokens: usize) -> f64 {
        self.decode_bytes_fixed + self.decode_bytes_per_context_token * context_tokens as f64
    }

    /// Floating point operations to read a prompt of `prompt_tokens` into an empty cache.
    pub fn prefill_flops(&self, prompt_tokens: usize) -> f64 {
        let p = prompt_tokens as f64;
        self.prefill_flops_per_token * p + self.prefill_flops_per_pair * p * (p + 1.0) / 2.0
    }
}

/// Refuses a request that does not fit, in the words every engine should use.
///
/// # Errors
/// When `tokens` exceeds `context_tokens`.
pub fn ensure_fits(tokens: usize, context_tokens: usize) -> Result<()> {
    if tokens > context_tokens {
        bail!(
            "{tokens} tokens do not fit the model's context of {context_tokens}; shorten the prompt or ask for fewer tokens"
        );
    }
    Ok(())
}
