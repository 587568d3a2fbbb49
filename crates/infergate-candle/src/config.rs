//! [`LlamaConfig`]: the shape of a Llama, Qwen2 or Qwen3 model, from config.json or from GGUF metadata, checked.

use anyhow::{Result, bail, ensure};
use candle_transformers::models::llama::{Llama3RopeConfig, Llama3RopeType};
use serde::Deserialize;
use serde_json::Value;

use infergate::engine::Cost;

/// The model families that share Llama's layout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// Llama and what is built like it (SmolLM2, TinyLlama).
    Llama,
    /// Qwen2, Qwen2.5: a bias on q, k and v.
    Qwen2,
    /// Qwen3: a norm on q and k, a head size of its own.
    Qwen3,
}

impl Family {
    /// The family of this name in config.json's `model_type` and GGUF's `general.architecture`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Llama, Self::Qwen2, Self::Qwen3].into_iter().find(|family| family.name() == name)
    }

    /// The name [`from_name`](Self::from_name) reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// Shape and constants of a model with Llama's layout.
#[derive(Debug, Clone)]
pub struct LlamaConfig {
    /// Which of the variants.
    pub family: Family,
    /// Transformer blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width inside the MLP.
    pub intermediate: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Rows of the embedding.
    pub vocab: usize,
    /// Positions the model was made for.
    pub context: usize,
    /// The output head is the embedding.
    pub tied: bool,
    /// Added to the mean square in every norm.
    pub norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f32,
    /// Llama 3.1's stretched frequencies.
    pub rope_scaling: Option<Llama3RopeConfig>,
}

/// The keys of Hugging Face's config.json that change what is computed.
#[derive(Debug, Deserialize)]
struct HfConfig {
    hidden_size: usize,
    intermediate_size: usize,
    vocab_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    hidden_act: Option<String>,
    rope_theta: Option<f32>,
    rope_scaling: Option<Value>,
    /// What transformers 5 writes in place of the two keys above.
    rope_parameters: Option<Value>,
    tie_word_embeddings: Option<bool>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    use_sliding_window: Option<bool>,
}

impl LlamaConfig {
    /// The shape of SmolLM2-135M.
    pub fn smollm2_135m() -> Self {
        Self {
            family: Family::Llama,
            layers: 30,
            hidden: 576,
            intermediate: 1536,
            heads: 9,
            kv_heads: 3,
            head_dim: 64,
            vocab: 49152,
            context: 8192,
            tied: true,
            norm_eps: 1e-5,
            rope_theta: 100_000.0,
            rope_scaling: None,
        }
    }

    /// Reads config.json.
    ///
    /// # Errors
    /// When a key is missing, or a value asks for something that is not computed here.
    pub fn from_hf(family: Family, config: &Value) -> Result<Self> {
        let hf = HfConfig::deserialize(config)?;
        let act = hf.hidden_act.as_deref().unwrap_or("silu");
        ensure!(act == "silu", "hidden_act `{act}` is not supported; only silu is");
        for (key, value) in [
            ("attention_bias", hf.attention_bias),
            ("mlp_bias", hf.mlp_bias),
            ("use_sliding_window", hf.use_sliding_window),
        ] {
            ensure!(value != Some(true), "{key} = true is not supported");
        }
        let head_dim = match family {
            Family::Qwen3 => hf.head_dim.unwrap_or(128),
            _ => hf.head_dim.unwrap_or(hf.hidden_size.checked_div(hf.num_attention_heads).unwrap_or(0)),
        };
        let rope = hf.rope_parameters.as_ref().or(hf.rope_scaling.as_ref());
        let theta_inside = rope.and_then(|r| r.get("rope_theta")).map(f32::deserialize).transpose()?;
        Self {
            family,
            layers: hf.num_hidden_layers,
            hidden: hf.hidden_size,
            intermediate: hf.intermediate_size,
            heads: hf.num_attention_heads,
            kv_heads: hf.num_key_value_heads.unwrap_or(hf.num_attention_heads),
            head_dim,
            vocab: hf.vocab_size,
            context: hf.max_position_embeddings,
            tied: hf.tie_word_embeddings.unwrap_or(false),
            norm_eps: hf.rms_norm_eps,
            rope_theta: hf.rope_theta.or(theta_inside).unwrap_or(10_000.0),
            rope_scaling: rope.map(|r| rope_scaling(family, r)).transpose()?.flatten(),
        }
        .checked()
    }

    /// This configuration, if it can be computed with at all.
    ///
    /// # Errors
    /// Naming the value that cannot be.
    pub fn checked(self) -> Result<Self> {
        let sizes = [
            ("layers", self.layers),
            ("hidden size", self.hidden),
            ("heads", self.heads),
            ("key-value heads", self.kv_heads),
            ("context", self.context),
        ];
        for (name, size) in sizes {
            ensure!(size > 0, "a model with {name} = 0 cannot be computed");
        }
        ensure!(
            self.heads.is_multiple_of(self.kv_heads),
            "{} attention heads cannot share {} key-value heads",
            self.heads,
            self.kv_heads
        );
        ensure!(self.head_dim.is_multiple_of(2), "a head size of {} is not even", self.head_dim);
        if self.family != Family::Qwen3 {
            ensure!(
                self.q_width() == self.hidden,
                "{} heads of {} do not make a hidden size of {}",
                self.heads,
                self.head_dim,
                self.hidden
            );
        }
        Ok(self)
    }

    /// Width of all query heads together.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of all key heads together.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// The unavoidable work, with weights of `decode_weight_bytes` read for each token and an f32 KV cache.
    ///
    /// FLOPs are two per weight of the blocks' matrices (Kaplan et al. 2020, section 2.1), and `4 * head_dim` per head for
    /// a pair of tokens (scores and weighted values). The output head reads one position only and is left out.
    pub fn cost(&self, decode_weight_bytes: u64) -> Cost {
        let attention = self.hidden * (2 * self.q_width() + 2 * self.kv_width());
        let matrices = self.layers * (attention + 3 * self.hidden * self.intermediate);
        Cost {
            decode_bytes_fixed: decode_weight_bytes as f64,
            decode_bytes_per_context_token: (2 * self.layers * self.kv_width() * size_of::<f32>()) as f64,
            prefill_flops_per_token: 2.0 * matrices as f64,
            prefill_flops_per_pair: (4 * self.layers * self.q_width()) as f64,
        }
    }
}

/// Reads `rope_scaling` or `rope_parameters`. `Ok(None)`: plain rotary positions.
fn rope_scaling(family: Family, rope: &Value) -> Result<Option<Llama3RopeConfig>> {
    if rope.is_null() {
        return Ok(None);
    }
    let kind = rope.get("rope_type").or_else(|| rope.get("type")).and_then(Value::as_str).unwrap_or("default");
    match kind {
        "default" => Ok(None),
        "llama3" if family == Family::Llama => {
            let scaling = Llama3RopeConfig::deserialize(rope)?;
            Ok(Some(Llama3RopeConfig { rope_type: Llama3RopeType::Llama3, ..scaling }))
        }
        other => bail!("rope_scaling of type `{other}` is not supported for {}", family.name()),
    }
}
