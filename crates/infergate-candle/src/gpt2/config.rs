//! [`Gpt2Config`]: the shape of a GPT-2, as Hugging Face's `config.json` writes it.

use anyhow::{Result, ensure};
use serde::Deserialize;

use infergate::engine::{Cost, EngineInfo};

/// The nonlinearity between the two halves of the MLP.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub enum Activation {
    /// The tanh approximation of GELU.
    #[serde(rename = "gelu_new", alias = "gelu_pytorch_tanh")]
    GeluNew,
    /// The exact GELU, `x * Phi(x)`.
    #[serde(rename = "gelu")]
    Gelu,
}

/// The shape of a GPT-2. Deserialises from Hugging Face's `config.json`; keys that do not change the output are ignored, and one
/// that is missing has GPT-2's value, as in transformers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Gpt2Config {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Longest sequence, in tokens. Older files repeat it as `n_ctx`, which transformers ignores too.
    pub n_positions: usize,
    /// Width of the residual stream.
    pub n_embd: usize,
    /// Number of blocks.
    pub n_layer: usize,
    /// Attention heads of a block; they divide `n_embd`.
    pub n_head: usize,
    /// Width of the MLP; `None` is `4 * n_embd`.
    pub n_inner: Option<usize>,
    /// Added to the variance in every layer norm.
    pub layer_norm_epsilon: f64,
    /// The MLP's nonlinearity.
    #[serde(rename = "activation_function")]
    pub activation: Activation,
    /// Whether attention scores are divided by the square root of the head's width.
    pub scale_attn_weights: bool,
    /// A variant this implementation refuses.
    pub scale_attn_by_inverse_layer_idx: bool,
    /// A variant this implementation refuses.
    pub add_cross_attention: bool,
    /// Whether the output head is the token embedding; `false` is refused.
    pub tie_word_embeddings: bool,
}

impl Default for Gpt2Config {
    fn default() -> Self {
        Self::gpt2()
    }
}

impl Gpt2Config {
    /// What `synthetic:NAME` is; `None` for other architectures.
    pub fn synthetic(name: &str) -> Option<Self> {
        match name {
            "gpt2" => Some(Self::gpt2()),
            "distilgpt2" => Some(Self::distilgpt2()),
            "tiny" => Some(Self::tiny()),
            _ => None,
        }
    }

    /// GPT-2 124M.
    pub fn gpt2() -> Self {
        Self {
            vocab_size: 50257,
            n_positions: 1024,
            n_embd: 768,
            n_layer: 12,
            n_head: 12,
            n_inner: None,
            layer_norm_epsilon: 1e-5,
            activation: Activation::GeluNew,
            scale_attn_weights: true,
            scale_attn_by_inverse_layer_idx: false,
            add_cross_attention: false,
            tie_word_embeddings: true,
        }
    }

    /// DistilGPT-2, 82M: GPT-2 with half the blocks.
    pub fn distilgpt2() -> Self {
        Self { n_layer: 6, ..Self::gpt2() }
    }

    /// A model for tests: 2 blocks, 32 wide, 2 heads, 512 tokens, the context of GPT-2.
    pub fn tiny() -> Self {
        Self { vocab_size: 512, n_embd: 32, n_layer: 2, n_head: 2, ..Self::gpt2() }
    }

    /// What an engine says of it.
    pub fn info(&self) -> EngineInfo {
        EngineInfo {
            architecture: Some("gpt2".into()),
            dtype: "f32".into(),
            context_tokens: self.n_positions,
            vocab_tokens: self.vocab_size,
            ..EngineInfo::default()
        }
    }

    /// Width of the MLP.
    pub fn inner(&self) -> usize {
        self.n_inner.unwrap_or(4 * self.n_embd)
    }

    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.n_embd / self.n_head
    }

    /// Number of weights, the head counted once with the embedding it shares.
    pub fn parameters(&self) -> u64 {
        let (e, f) = (self.n_embd as u64, self.inner() as u64);
        let block = 4 * e + (e * 3 * e + 3 * e) + (e * e + e) + (e * f + f) + (f * e + e);
        (self.vocab_size + self.n_positions) as u64 * e + self.n_layer as u64 * block + 2 * e
    }

    /// The unavoidable work with f32 weights.
    ///
    /// - Bytes of a decoded token: every weight once but the position table, of which one row is read; plus keys and
    ///   values, `2 * n_layer * n_embd` floats a token of context.
    /// - FLOPs of a prompt token: two per weight of the blocks' four matrices; of the last block only keys and values are
    ///   needed at every position. What runs for the last position alone (that block's rest, the head) is left out.
    /// - FLOPs of an attended pair (i, j <= i): two for the score and two for the sum, per channel and layer but the last.
    pub fn cost(&self) -> Cost {
        let (e, f, layers) = (self.n_embd as f64, self.inner() as f64, self.n_layer as f64);
        let positions = ((self.n_positions - 1) * self.n_embd) as f64;
        Cost {
            decode_bytes_fixed: 4.0 * (self.parameters() as f64 - positions),
            decode_bytes_per_context_token: 4.0 * 2.0 * layers * e,
            prefill_flops_per_token: 2.0 * ((layers - 1.0) * (4.0 * e * e + 2.0 * e * f) + 2.0 * e * e),
            prefill_flops_per_pair: 4.0 * (layers - 1.0) * e,
        }
    }

    /// Bytes of the keys and values of one sequence.
    pub fn cache_bytes(&self) -> u64 {
        (4 * 2 * self.n_layer * self.n_positions * self.n_embd) as u64
    }

    /// Refuses what this implementation would compute wrongly.
    ///
    /// # Errors
    /// The first key that is impossible or not supported.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("vocab_size", self.vocab_size),
            ("n_positions", self.n_positions),
            ("n_embd", self.n_embd),
            ("n_layer", self.n_layer),
            ("n_head", self.n_head),
            ("n_inner", self.inner()),
        ] {
            ensure!(value > 0, "GPT-2 config: {key} is 0; check config.json");
        }
        ensure!(
            self.n_embd.is_multiple_of(self.n_head),
            "GPT-2 config: n_embd {} is no multiple of n_head {}; check config.json",
            self.n_embd,
            self.n_head
        );
        ensure!(
            self.layer_norm_epsilon > 0.0,
            "GPT-2 config: layer_norm_epsilon {} must be above zero; check config.json",
            self.layer_norm_epsilon
        );
        for (key, unsupported) in [
            ("scale_attn_by_inverse_layer_idx=true", self.scale_attn_by_inverse_layer_idx),
            ("add_cross_attention=true", self.add_cross_attention),
            ("tie_word_embeddings=false", !self.tie_word_embeddings),
        ] {
            ensure!(!unsupported, "GPT-2 config: {key} is not supported; use a model without it");
        }
        Ok(())
    }
}
