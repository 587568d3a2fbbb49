//! Qwen2 and Qwen3 from safetensors (f32) and from GGUF (quantized), by candle-transformers.

use std::io::{Read, Seek};

use anyhow::Result;
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{Device, Tensor};
use candle_nn::{Activation, VarBuilder};
use candle_transformers::models::{quantized_qwen2, quantized_qwen3, qwen2, qwen3};

use crate::OneLine as _;
use crate::adapter::Stateful;
use crate::config::LlamaConfig;

/// Implements [`Stateful`] for a model with `forward(ids, position)` and `clear_kv_cache()`.
macro_rules! stateful {
    ($model:ty, snapshot: $snapshot:expr, share: $share:expr) => {
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

            fn share(&self) -> Option<Self> {
                $share(self)
            }
        }
    };
}

stateful!(qwen2::ModelForCausalLM, snapshot: |m: &Self| Some(m.clone()), share: |m: &Self| Some(m.clone()));
stateful!(qwen3::ModelForCausalLM, snapshot: |m: &Self| Some(m.clone()), share: |m: &Self| Some(m.clone()));
// Not `Clone` in candle-transformers.
stateful!(quantized_qwen2::ModelWeights, snapshot: |_| None, share: |_| None);
// Each layer owns a plain vector for 4096 positions, which a clone copies: too much at each prompt.
stateful!(quantized_qwen3::ModelWeights, snapshot: |_| None, share: |m: &Self| Some(m.clone()));

/// Builds Qwen2 in f32.
///
/// # Errors
/// When candle cannot build it.
pub fn qwen2(config: &LlamaConfig, vb: VarBuilder<'_>) -> Result<qwen2::ModelForCausalLM> {
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
    qwen2::ModelForCausalLM::new(&candle, vb).one_line()
}

/// Builds Qwen3 in f32.
///
/// # Errors
/// When candle cannot build it.
pub fn qwen3(config: &LlamaConfig, vb: VarBuilder<'_>) -> Result<qwen3::ModelForCausalLM> {
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
    qwen3::ModelForCausalLM::new(&candle, vb).one_line()
}

/// Reads a quantized Qwen2 from a GGUF file.
///
/// # Errors
/// When candle cannot read it.
pub fn quantized2<R: Read + Seek>(content: Content, file: &mut R) -> Result<quantized_qwen2::ModelWeights> {
    quantized_qwen2::ModelWeights::from_gguf(content, file, &Device::Cpu).one_line()
}

/// Reads a quantized Qwen3 from a GGUF file.
///
/// # Errors
/// When candle cannot read it.
pub fn quantized3<R: Read + Seek>(mut content: Content, file: &mut R) -> Result<quantized_qwen3::ModelWeights> {
    // candle keeps rotary tables in this type, and f16 unless told otherwise: too coarse for positions beyond 2048.
    content.metadata.insert("general.dtype".into(), Value::U32(0));
    quantized_qwen3::ModelWeights::from_gguf(content, file, &Device::Cpu).one_line()
}
