//! Llama, Qwen2 and Qwen3 as candle-transformers computes them, in f32 and quantized, each as a [`Decoder`].

use std::io::{Read, Seek};

use anyhow::{Result, bail};
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{DType, Device, Tensor};
use candle_nn::{Activation, VarBuilder};
use candle_transformers::models::{llama, quantized_llama, quantized_qwen2, quantized_qwen3, qwen2, qwen3};

use crate::config::{Family, LlamaConfig};
use crate::decoder::{Decoder, Facts};
use crate::weights;
use infergate::engine::TokenId;

/// A model in f32 from `vb`, which must have every weight of `config` (candle panics where one is missing).
///
/// # Errors
/// When candle cannot build it.
pub fn in_f32(config: &LlamaConfig, vb: VarBuilder<'_>) -> Result<Box<dyn Decoder>> {
    let weight_bytes = weights::f32_bytes(config);
    // Of an embedding that is not the head too, a step reads one row.
    let unread_bytes = if config.tied { 0 } else { 4 * (config.vocab * config.hidden) as u64 };
    let facts = facts(config, "", weight_bytes, weight_bytes - unread_bytes);
    match config.family {
        Family::Llama => decoder(Llama::load(config, vb), facts),
        Family::Qwen2 => decoder(qwen2(config, vb), facts),
        Family::Qwen3 => decoder(qwen3(config, vb), facts),
    }
}

/// A model as a GGUF file stores it. Its weights take `weight_bytes`, and a token reads `read_bytes` of them.
///
/// # Errors
/// When candle cannot read it.
pub fn quantized(
    config: &LlamaConfig,
    mut content: Content,
    file: &mut (impl Read + Seek),
    (weight_bytes, read_bytes): (u64, u64),
) -> Result<Box<dyn Decoder>> {
    let facts = facts(config, "quantized_", weight_bytes, read_bytes);
    match config.family {
        Family::Llama => decoder(quantized_llama::ModelWeights::from_gguf(content, file, &Device::Cpu), facts),
        Family::Qwen2 => decoder(quantized_qwen2::ModelWeights::from_gguf(content, file, &Device::Cpu), facts),
        Family::Qwen3 => {
            // candle keeps rotary tables in this type, and f16 unless told otherwise: too coarse for positions beyond 2048.
            content.metadata.insert("general.dtype".into(), Value::U32(0));
            decoder(quantized_qwen3::ModelWeights::from_gguf(content, file, &Device::Cpu), facts)
        }
    }
}

fn decoder<M: Stateful>(model: candle_core::Result<M>, facts: Facts) -> Result<Box<dyn Decoder>> {
    Ok(Box::new(Adapter { model: model?, facts, cached_tokens: 0, after_prompt: None }))
}

/// What a receipt says of a model of `config`. `kind` stands before the family's name there.
fn facts(config: &LlamaConfig, kind: &str, weight_bytes: u64, read_bytes: u64) -> Facts {
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    let is_qwen3 = config.family == Family::Qwen3;
    let implementation = format!("candle-transformers {kind}{}", config.family.name());
    // That of qwen3 depends on what is read.
    let attention = (!is_qwen3).then(|| pair("attention", "whole_score_matrix"));
    let is_preallocated = kind == "quantized_" && is_qwen3;
    let cache = if is_preallocated { "f32, preallocated" } else { "f32, concatenated at each step" };
    let known = [pair("implementation", &implementation), pair("kv_cache", cache)];
    let settings = known.into_iter().chain(attention).collect();
    Facts { parameters: weights::parameters(config), weight_bytes, cost: config.cost(read_bytes), settings }
}

/// What candle-transformers' models have in common: weights behind `Arc`s, and a KV cache inside.
trait Stateful: Sized + Send + 'static {
    /// Runs `ids` (shape `[1, n]`) at position `position`; logits of the last position, any shape of `vocab` numbers.
    fn run(&mut self, ids: &Tensor, position: usize) -> candle_core::Result<Tensor>;

    /// Empties the cache.
    fn clear(&mut self);

    /// The same weights with the same cache, if that costs next to nothing. Caches that grow by `Tensor::cat` can be
    /// cloned: nothing ever writes into a tensor that a clone holds.
    fn snapshot(&self) -> Option<Self>;

    /// The same weights for another sequence, its cache in any state.
    fn share(&self) -> Option<Self> {
        self.snapshot()
    }
}

/// One sequence on a model of candle-transformers.
struct Adapter<M> {
    model: M,
    facts: Facts,
    cached_tokens: usize,
    /// The model with the cache as the first forward after a reset left it, and how many tokens that were.
    after_prompt: Option<(usize, M)>,
}

impl<M: Stateful> Decoder for Adapter<M> {
    fn reset(&mut self) -> Result<()> {
        self.model.clear();
        self.cached_tokens = 0;
        self.after_prompt = None;
        Ok(())
    }

    fn forward(&mut self, tokens: &[TokenId]) -> Result<Tensor> {
        let ids = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        let logits = self.model.run(&ids, self.cached_tokens)?;
        let first = self.cached_tokens == 0;
        self.cached_tokens += tokens.len();
        if first {
            self.after_prompt = self.model.snapshot().map(|model| (self.cached_tokens, model));
        }
        Ok(logits.flatten_all()?.to_dtype(DType::F32)?)
    }

    fn cached_tokens(&self) -> usize {
        self.cached_tokens
    }

    fn truncate(&mut self, tokens: usize) -> Result<bool> {
        if tokens == self.cached_tokens {
            return Ok(true);
        }
        let kept = self.after_prompt.as_ref().filter(|(kept, _)| *kept == tokens);
        let Some(model) = kept.and_then(|(_, model)| model.snapshot()) else { return Ok(false) };
        self.model = model;
        self.cached_tokens = tokens;
        Ok(true)
    }

    fn fork(&self) -> Result<Box<dyn Decoder>> {
        let Some(mut model) = self.model.share() else {
            bail!("this model of candle-transformers cannot share its weights with a second sequence")
        };
        model.clear();
        decoder(Ok(model), self.facts.clone())
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }
}

/// Implements [`Stateful`] for a model with `forward(ids, position)` and `clear_kv_cache()`.
macro_rules! stateful {
    ($model:ty, snapshot: $snapshot:expr $(, share: $share:expr)?) => {
        impl Stateful for $model {
            fn run(&mut self, ids: &Tensor, position: usize) -> candle_core::Result<Tensor> {
                self.forward(ids, position)
            }

            fn clear(&mut self) {
                self.clear_kv_cache();
            }

            fn snapshot(&self) -> Option<Self> {
                $snapshot(self)
            }

            $(fn share(&self) -> Option<Self> {
                $share(self)
            })?
        }
    };
}

fn copy<M: Clone>(model: &M) -> Option<M> {
    Some(model.clone())
}

fn none<M>(_: &M) -> Option<M> {
    None
}

stateful!(qwen2::ModelForCausalLM, snapshot: copy);
stateful!(qwen3::ModelForCausalLM, snapshot: copy);
stateful!(quantized_llama::ModelWeights, snapshot: copy);
// Not `Clone` in candle-transformers.
stateful!(quantized_qwen2::ModelWeights, snapshot: none);
// Each layer owns a plain vector for 4096 positions, which a clone copies: too much at each prompt.
stateful!(quantized_qwen3::ModelWeights, snapshot: none, share: copy);

/// The f32 model and the cache that candle-transformers keeps beside it.
#[derive(Clone)]
struct Llama {
    model: llama::Llama,
    cache: llama::Cache,
    empty: llama::Cache,
}

impl Llama {
    /// Builds the model from `vb`, which must have every weight of `config` (candle panics where one is missing).
    fn load(config: &LlamaConfig, vb: VarBuilder<'_>) -> candle_core::Result<Self> {
        let candle = llama::Config {
            hidden_size: config.hidden,
            intermediate_size: config.intermediate,
            vocab_size: config.vocab,
            num_hidden_layers: config.layers,
            num_attention_heads: config.heads,
            num_key_value_heads: config.kv_heads,
            use_flash_attn: false,
            rms_norm_eps: config.norm_eps,
            rope_theta: config.rope_theta,
            bos_token_id: None,
            eos_token_id: None,
            rope_scaling: config.rope_scaling.clone(),
            max_position_embeddings: config.context,
            tie_word_embeddings: config.tied,
        };
        let model = llama::Llama::load(vb, &candle)?;
        let empty = llama::Cache::new(true, DType::F32, &candle, &Device::Cpu)?;
        Ok(Self { model, cache: empty.clone(), empty })
    }
}

impl Stateful for Llama {
    fn run(&mut self, ids: &Tensor, position: usize) -> candle_core::Result<Tensor> {
        self.model.forward(ids, position, &mut self.cache)
    }

    fn clear(&mut self) {
        self.cache = self.empty.clone();
    }

    fn snapshot(&self) -> Option<Self> {
        Some(self.clone())
    }
}

fn qwen2(config: &LlamaConfig, vb: VarBuilder<'_>) -> candle_core::Result<qwen2::ModelForCausalLM> {
    let candle = qwen2::Config {
        vocab_size: config.vocab,
        hidden_size: config.hidden,
        intermediate_size: config.intermediate,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        num_key_value_heads: config.kv_heads,
        max_position_embeddings: config.context,
        // candle applies the window in prefill even where the model does not use one.
        sliding_window: config.context,
        max_window_layers: config.layers,
        tie_word_embeddings: config.tied,
        rope_theta: f64::from(config.rope_theta),
        rms_norm_eps: config.norm_eps,
        use_sliding_window: false,
        hidden_act: Activation::Silu,
    };
    qwen2::ModelForCausalLM::new(&candle, vb)
}

fn qwen3(config: &LlamaConfig, vb: VarBuilder<'_>) -> candle_core::Result<qwen3::ModelForCausalLM> {
    let candle = qwen3::Config {
        vocab_size: config.vocab,
        hidden_size: config.hidden,
        intermediate_size: config.intermediate,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        head_dim: config.head_dim,
        attention_bias: false,
        num_key_value_heads: config.kv_heads,
        max_position_embeddings: config.context,
        sliding_window: None,
        max_window_layers: config.layers,
        tie_word_embeddings: config.tied,
        rope_theta: f64::from(config.rope_theta),
        rms_norm_eps: config.norm_eps,
        use_sliding_window: false,
        hidden_act: Activation::Silu,
    };
    qwen3::ModelForCausalLM::new(&candle, vb)
}
