//! Llama from safetensors (f32) and from GGUF (quantized), by candle-transformers.

use std::io::{Read, Seek};

use anyhow::Result;
use candle_core::quantized::gguf_file::Content;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{llama, quantized_llama};

use crate::OneLine as _;
use crate::adapter::Stateful;
use crate::config::LlamaConfig;

/// Positions the quantized Llama of candle-transformers has rotary tables for, whatever the file says.
pub const QUANTIZED_CONTEXT_TOKENS: usize = quantized_llama::MAX_SEQ_LEN;

/// The f32 model and the cache that candle-transformers keeps beside it.
#[derive(Clone)]
pub struct Llama {
    model: llama::Llama,
    cache: llama::Cache,
    empty: llama::Cache,
}

impl Llama {
    /// Builds the model from `vb`, which must have every weight of `config` (candle panics where one is missing).
    ///
    /// # Errors
    /// When candle cannot build it.
    pub fn load(config: &LlamaConfig, vb: VarBuilder<'_>) -> Result<Self> {
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
        let model = llama::Llama::load(vb, &candle).one_line()?;
        let empty = llama::Cache::new(true, DType::F32, &candle, &Device::Cpu).one_line()?;
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

/// The quantized model.
pub type QuantizedLlama = quantized_llama::ModelWeights;

/// Reads the quantized model's weights from a GGUF file.
///
/// # Errors
/// When candle cannot read them.
pub fn quantized<R: Read + Seek>(content: Content, file: &mut R) -> Result<QuantizedLlama> {
    QuantizedLlama::from_gguf(content, file, &Device::Cpu).one_line()
}

impl Stateful for QuantizedLlama {
    fn run(&mut self, ids: &Tensor, position: usize) -> candle_core::Result<Tensor> {
        self.forward(ids, position)
    }

    fn clear(&mut self) {
        self.clear_kv_cache();
    }

    fn snapshot(&self) -> Option<Self> {
        Some(self.clone())
    }
}
