//! [`Gpt2Config`]: the parts of Hugging Face's config.json that the family's models differ in.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::engine::Cost;

/// The MLP's activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// The tanh approximation of GELU, as GPT-2 was trained with.
    GeluNew,
    /// GELU with the error function.
    Gelu,
}

/// Sizes of a GPT-2 model.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpt2Config {
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// The context: learned positions.
    pub context: usize,
    /// Width.
    pub width: usize,
    /// Blocks.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the MLP's hidden layer.
    pub inner: usize,
    /// Epsilon of the layer norms.
    pub epsilon: f32,
    /// The MLP's activation.
    pub activation: Activation,
}

#[derive(Deserialize)]
struct HuggingFace {
    vocab_size: usize,
    #[serde(alias = "n_ctx")]
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    n_inner: Option<usize>,
    layer_norm_epsilon: Option<f32>,
    activation_function: Option<String>,
    #[serde(default = "yes")]
    scale_attn_weights: bool,
    #[serde(default)]
    scale_attn_by_inverse_layer_idx: bool,
    #[serde(default)]
    add_cross_attention: bool,
    #[serde(default = "yes")]
    tie_word_embeddings: bool,
}

fn yes() -> bool {
    true
}

impl Gpt2Config {
    /// GPT-2 124M.
    pub fn gpt2() -> Self {
        Self {
            vocab: 50257,
            context: 1024,
            width: 768,
            layers: 12,
            heads: 12,
            inner: 3072,
            epsilon: 1e-5,
            activation: Activation::GeluNew,
        }
    }

    /// DistilGPT-2 82M: half of GPT-2's blocks.
    pub fn distilgpt2() -> Self {
        Self { layers: 6, ..Self::gpt2() }
    }

    /// Small enough to load in milliseconds, with GPT-2's context.
    pub fn tiny() -> Self {
        Self { vocab: 512, width: 32, layers: 2, heads: 2, inner: 128, ..Self::gpt2() }
    }

    /// From the text of config.json, parsed.
    ///
    /// # Errors
    /// When a size is missing, or the configuration asks for a variant that is not computed here.
    pub fn from_hf(json: &Value) -> Result<Self> {
        let hf = HuggingFace::deserialize(json).context("not a GPT-2 configuration")?;
        let activation = match hf.activation_function.as_deref() {
            None | Some("gelu_new" | "gelu_pytorch_tanh") => Activation::GeluNew,
            Some("gelu") => Activation::Gelu,
            Some(other) => bail!("activation_function `{other}` is not supported; gelu_new and gelu are"),
        };
        ensure!(hf.scale_attn_weights, "scale_attn_weights = false is not supported");
        ensure!(!hf.scale_attn_by_inverse_layer_idx, "scale_attn_by_inverse_layer_idx = true is not supported");
        ensure!(!hf.add_cross_attention, "add_cross_attention = true is not supported");
        ensure!(hf.tie_word_embeddings, "tie_word_embeddings = false is not supported");
        let config = Self {
            vocab: hf.vocab_size,
            context: hf.n_positions,
            width: hf.n_embd,
            layers: hf.n_layer,
            heads: hf.n_head,
            inner: hf.n_inner.unwrap_or(4 * hf.n_embd),
            epsilon: hf.layer_norm_epsilon.unwrap_or(1e-5),
            activation,
        };
        let sizes = [config.vocab, config.context, config.width, config.layers, config.heads, config.inner];
        ensure!(sizes.iter().all(|size| (1..=1 << 24).contains(size)), "a size is zero or beyond reason");
        ensure!(
            config.width.is_multiple_of(config.heads),
            "n_embd {} is not a multiple of n_head {}",
            config.width,
            config.heads
        );
        Ok(config)
    }

    /// Width of one head.
    pub fn head_width(&self) -> usize {
        self.width / self.heads
    }

    /// Number of weights, the tied head counted once.
    pub fn parameters(&self) -> u64 {
        let (e, i) = (self.width, self.inner);
        let block = (3 * e * e + 3 * e) + (e * e + e) + (e * i + i) + (i * e + e) + 4 * e;
        (self.vocab * e + self.context * e + self.layers * block + 2 * e) as u64
    }

    /// Weights that multiply a token's activations: two operations each for every token.
    fn matrix_weights(&self) -> f64 {
        let (e, i) = (self.width as f64, self.inner as f64);
        self.layers as f64 * (4.0 * e * e + 2.0 * e * i)
    }

    /// Work per token in f32. A step reads every block and the head once, and the keys and values of its context; a prompt
    /// token costs two operations a weight, and four a width and layer for each token it attends to (Kaplan et al. 2020,
    /// table 1). The head is computed for one position of a prompt only and left out there.
    pub fn cost(&self) -> Cost {
        let kv = (self.layers * 2 * self.width) as f64;
        Cost {
            decode_bytes_fixed: 4.0 * (self.matrix_weights() + (self.vocab * self.width) as f64),
            decode_bytes_per_context_token: 4.0 * kv,
            prefill_flops_per_token: 2.0 * self.matrix_weights(),
            prefill_flops_per_pair: 2.0 * kv,
        }
    }
}
