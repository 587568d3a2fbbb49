//! What an engine says of itself ([`EngineInfo`], [`Device`], [`Cost`]), and which model it is to load ([`LoadRequest`]).

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::receipt::limits::MAX_NUMBER;

/// A token's number in the model's vocabulary.
pub type TokenId = u32;

/// Identity of an engine and its model, as it goes into a receipt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EngineInfo {
    /// The engine, for example `candle`.
    pub name: String,
    /// The engine's version.
    pub version: String,
    /// The model's name without local folders: `synthetic:gpt2`, `SmolLM2-135M-Instruct.Q4_1.gguf`, `hf:org/name`.
    pub model: String,
    /// Architecture family: `gpt2`, `llama`, `qwen2`, `qwen3`.
    pub architecture: Option<String>,
    /// What the weights are stored in, and computed in unless `computes_in` says otherwise: `f32`, `q4_1`.
    pub dtype: String,
    /// `f32` where the weights are stored in f16 and widened as they are loaded.
    pub computes_in: Option<String>,
    /// Number of weights.
    pub parameters: Option<u64>,
    /// Bytes of the weights in memory.
    pub weight_bytes: Option<u64>,
    /// SHA-256 over the weights' file (or over the seed and configuration that made them), hex.
    pub weights_sha256: Option<String>,
    /// The commit a hub revision was resolved to.
    pub revision: Option<String>,
    /// Prompt and output together must not exceed this many tokens.
    pub context_tokens: usize,
    /// Tokens are below this number.
    pub vocab_tokens: usize,
    /// Every choice that can change speed or output: threads, GEMM, cache, huge pages...
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Whether it stands still between two calls.
    #[serde(default)]
    pub pacing: Pacing,
}

impl EngineInfo {
    /// The name of what is no engine but criterion benches.
    pub const CRITERION: &'static str = "criterion";

    /// The first thing that no engine can say of itself.
    pub fn unsound(&self) -> Option<String> {
        if self.name.is_empty() || self.model.is_empty() {
            return Some("engine or model has no name".into());
        }
        let sizes = [
            ("parameters", self.parameters),
            ("weight_bytes", self.weight_bytes),
            ("context_tokens", Some(self.context_tokens as u64)),
            ("vocab_tokens", Some(self.vocab_tokens as u64)),
        ];
        let (what, number) =
            sizes.into_iter().find_map(|(what, number)| Some((what, number.filter(|n| *n > MAX_NUMBER)?)))?;
        Some(format!("the engine's {what} is {number}, and {MAX_NUMBER} is the most"))
    }

    /// Whether these are criterion benches: their model is the bench target, and they have no threads, seed or weights of their own.
    pub fn is_of_benches(&self) -> bool {
        self.name == Self::CRITERION
    }
}

/// What an engine does between two calls. A paired run takes turns by it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Nothing: all work happens inside `Engine::start` and `Engine::next`, so
    /// two processes can take turns token by token.
    #[default]
    Stepwise,
    /// It may go on computing, as a server or a GPU queue does. The smallest turn of a generation is the whole request; steps of a decode
    /// case are timed several at once, behind one that is not timed.
    Streaming,
}

/// Hardware an engine computes on besides the processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// How it is reached: `cuda`, `metal`, `vulkan`.
    pub kind: String,
    /// The model its driver names: `NVIDIA H200`.
    pub name: String,
    /// Its own memory, bytes. `None`: not known, or shared with the processor.
    pub memory_bytes: Option<u64>,
}

/// Work that cannot be avoided, for the fraction of the hardware's limit.
///
/// Each is linear in the context: `fixed + per_context_token * context`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
    /// Bytes read to decode one token at a context of `context_tokens`, or to read a prompt of so many: the weights once, and the cache.
    pub fn decode_bytes(&self, context_tokens: usize) -> f64 {
        self.decode_bytes_fixed + self.decode_bytes_per_context_token * context_tokens as f64
    }

    /// Floating point operations to decode one token at a context of `context_tokens`.
    pub fn decode_flops(&self, context_tokens: usize) -> f64 {
        self.prefill_flops_per_token + self.prefill_flops_per_pair * (context_tokens + 1) as f64
    }

    /// Floating point operations to read a prompt of `prompt_tokens` into an empty cache.
    pub fn prefill_flops(&self, prompt_tokens: usize) -> f64 {
        let p = prompt_tokens as f64;
        self.prefill_flops_per_token * p + self.prefill_flops_per_pair * p * (p + 1.0) / 2.0
    }
}

/// Which model to load, and how. The same on every command line, in `infergate.toml` and in the worker protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRequest {
    /// The model spec, for example `synthetic:gpt2`; what it means is the factory's business.
    pub model: String,
    /// Compute type, for example `f32`; `None` leaves it to the model's file.
    pub dtype: Option<String>,
    /// Threads to compute with.
    pub threads: usize,
    /// Seed of synthetic weights and synthetic prompts.
    pub seed: u64,
    /// Whatever else the factory understands, by name: a server's `url`, a `device`, how many layers it computes. An option
    /// can be a secret, so none is ever written into a receipt or an error.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

impl Default for LoadRequest {
    /// No model, one thread, seed 1, no options.
    fn default() -> Self {
        Self { model: String::new(), dtype: None, threads: 1, seed: 1, options: BTreeMap::new() }
    }
}

/// Refuses a request that does not fit, in the words every engine should use.
///
/// # Errors
/// When `tokens` exceeds `context_tokens`.
pub fn ensure_fits(tokens: usize, context_tokens: usize) -> Result<()> {
    ensure!(
        tokens <= context_tokens,
        "{tokens} tokens do not fit the model's context of {context_tokens}; shorten the prompt or ask for fewer tokens"
    );
    Ok(())
}

/// The first index at which two outputs differ, their lengths included.
pub fn first_difference(a: &[TokenId], b: &[TokenId]) -> Option<usize> {
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    common.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}

/// How far an engine's numbers may drift and still be the same output, unless the team says otherwise: the root mean square of the
/// changes of its best logits, each as a fraction of the largest one.
///
/// In f32 other orders of the same sums (1, 2 or 3 threads; every other weight off by its last bit) gave 1.3e-7 to 3.0e-7 on
/// GPT-2's shape with synthetic weights: 1e-6 is three times that. Narrower numbers round so many times more coarsely as they
/// have fewer bits. Quantized weights are multiplied with activations rounded to 8 bits, where a last bit decides which of 256
/// steps is taken: last bits of a Q4_1 model's norms gave 0.014 to 0.015, and 0.045 is three times that.
pub fn default_tolerance(engine: &EngineInfo) -> f64 {
    // `torch.float32`, `F32 (Metal)`
    let said = engine.computes_in.as_ref().unwrap_or(&engine.dtype).to_ascii_lowercase();
    let word = said.split_whitespace().next().and_then(|word| word.rsplit('.').next()).unwrap_or_default();
    match word {
        "f64" | "fp64" | "float64" | "double" => 1e-14,
        "f32" | "fp32" | "float32" | "float" | "single" => 1e-6,
        "f16" | "fp16" | "float16" | "half" | "tf32" => 1e-6 * 8192.0,
        "bf16" | "bfloat16" => 1e-6 * 65536.0,
        _ => 0.045,
    }
}
