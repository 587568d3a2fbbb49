//! GPT-2 on candle: config, attention, MLP, block, model.

mod config;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device, Tensor};
use candle_nn::{Module, VarBuilder, ops};

pub use config::{Activation, Gpt2Config};

use super::decoder::Decoder;
use crate::engine::{Cost, TokenId, ensure_fits};

/// Queries whose attention is computed at once; keys behind the block's last query are never touched.
const QUERY_BLOCK: usize = 128;

struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        x.matmul(&self.weight)?.broadcast_add(&self.bias)
    }
}

struct Block {
    ln_1: candle_nn::LayerNorm,
    c_attn: Linear,
    c_proj: Linear,
    ln_2: candle_nn::LayerNorm,
    mlp_fc: Linear,
    mlp_proj: Linear,
}

struct Weights {
    config: Gpt2Config,
    wte: Tensor,
    wpe: Tensor,
    blocks: Vec<Block>,
    ln_f: candle_nn::LayerNorm,
}

/// Keys and values of one layer, `[n_head, n_positions, head_dim]` each.
struct LayerCache {
    k: Tensor,
    v: Tensor,
}

/// A GPT-2 with one sequence's cache.
pub struct Gpt2 {
    weights: Arc<Weights>,
    cache: Vec<LayerCache>,
    cached: usize,
}

/// One tensor, with an error that names it.
fn tensor(vb: &VarBuilder, shape: &[usize], name: &str) -> Result<Tensor> {
    vb.get(shape, name).with_context(|| {
        let prefix = vb.prefix();
        let dot = if prefix.is_empty() { "" } else { "." };
        format!("GPT-2 weights: no tensor {prefix}{dot}{name} of shape {shape:?}; the weights do not match config.json")
    })
}

fn layer_norm(vb: &VarBuilder, config: &Gpt2Config, name: &str) -> Result<candle_nn::LayerNorm> {
    let weight = tensor(vb, &[config.n_embd], &format!("{name}.weight"))?;
    let bias = tensor(vb, &[config.n_embd], &format!("{name}.bias"))?;
    Ok(candle_nn::LayerNorm::new(weight, bias, config.layer_norm_epsilon))
}

fn linear(vb: &VarBuilder, input: usize, output: usize, name: &str) -> Result<Linear> {
    Ok(Linear {
        weight: tensor(vb, &[input, output], &format!("{name}.weight"))?,
        bias: tensor(vb, &[output], &format!("{name}.bias"))?,
    })
}

impl Gpt2 {
    /// Loads the weights named as Hugging Face does (with or without the `transformer.` prefix), to compute with `threads`.
    ///
    /// # Errors
    /// An impossible or unsupported config, a dtype other than f32, a missing or mis-shaped tensor.
    pub fn load(config: &Gpt2Config, vb: VarBuilder, threads: usize) -> Result<Self> {
        config.validate()?;
        ensure!(threads > 0, "GPT-2: 0 threads; give at least 1");
        ensure!(vb.dtype() == DType::F32, "GPT-2 computes in f32, not {:?}; use --dtype f32", vb.dtype());
        let vb = if vb.contains_tensor("transformer.wte.weight") { vb.pp("transformer") } else { vb };
        let (e, f) = (config.n_embd, config.inner());
        let blocks = (0..config.n_layer)
            .map(|layer| {
                let vb = vb.pp(format!("h.{layer}"));
                Ok(Block {
                    ln_1: layer_norm(&vb, config, "ln_1")?,
                    c_attn: linear(&vb, e, 3 * e, "attn.c_attn")?,
                    c_proj: linear(&vb, e, e, "attn.c_proj")?,
                    ln_2: layer_norm(&vb, config, "ln_2")?,
                    mlp_fc: linear(&vb, e, f, "mlp.c_fc")?,
                    mlp_proj: linear(&vb, f, e, "mlp.c_proj")?,
                })
            })
            .collect::<Result<_>>()?;
        let weights = Weights {
            config: config.clone(),
            wte: tensor(&vb, &[config.vocab_size, e], "wte.weight")?,
            wpe: tensor(&vb, &[config.n_positions, e], "wpe.weight")?,
            blocks,
            ln_f: layer_norm(&vb, config, "ln_f")?,
        };
        Self::over(Arc::new(weights))
    }

    fn over(weights: Arc<Weights>) -> Result<Self> {
        let config = &weights.config;
        let shape = (config.n_head, config.n_positions, config.head_dim());
        let zeros = || Tensor::zeros(shape, DType::F32, &Device::Cpu);
        let cache = (0..config.n_layer).map(|_| Ok(LayerCache { k: zeros()?, v: zeros()? })).collect::<Result<_>>()?;
        Ok(Self { weights, cache, cached: 0 })
    }
}

impl Weights {
    fn attention(&self, block: &Block, x: &Tensor, cache: &LayerCache, past: usize) -> candle_core::Result<Tensor> {
        let (len, _) = x.dims2()?;
        let (heads, dim) = (self.config.n_head, self.config.head_dim());
        let qkv = block.c_attn.forward(x)?;
        // [len, 3 * n_embd] to three of [n_head, len, head_dim].
        let part = |i: usize| qkv.narrow(1, i * heads * dim, heads * dim)?.reshape((len, heads, dim))?.transpose(0, 1);
        let q = part(0)?;
        cache.k.slice_set(&part(1)?.contiguous()?, 1, past)?;
        cache.v.slice_set(&part(2)?.contiguous()?, 1, past)?;
        let scale = if self.config.scale_attn_weights { 1.0 / (dim as f64).sqrt() } else { 1.0 };
        let mut parts = Vec::with_capacity(len.div_ceil(QUERY_BLOCK));
        for start in (0..len).step_by(QUERY_BLOCK) {
            let rows = QUERY_BLOCK.min(len - start);
            let keys = past + start + rows;
            let q = (q.narrow(1, start, rows)?.contiguous()? * scale)?;
            let mut scores = q.matmul(&cache.k.narrow(1, 0, keys)?.t()?)?;
            if rows > 1 {
                scores = scores.broadcast_add(&causal_mask(rows, keys)?)?;
            }
            let mixed = ops::softmax_last_dim(&scores)?.matmul(&cache.v.narrow(1, 0, keys)?)?;
            parts.push(mixed.transpose(0, 1)?.reshape((rows, heads * dim))?);
        }
        block.c_proj.forward(&Tensor::cat(&parts, 0)?)
    }

    fn mlp(&self, block: &Block, x: &Tensor) -> candle_core::Result<Tensor> {
        let inner = block.mlp_fc.forward(x)?;
        let inner = match self.config.activation {
            Activation::GeluNew => inner.gelu()?,
            Activation::Gelu => inner.gelu_erf()?,
        };
        block.mlp_proj.forward(&inner)
    }

    fn forward(&self, tokens: &[TokenId], cache: &[LayerCache], past: usize) -> candle_core::Result<Tensor> {
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let positions = self.wpe.narrow(0, past, tokens.len())?;
        let mut x = (self.wte.index_select(&ids, 0)? + positions)?;
        for (block, cache) in self.blocks.iter().zip(cache) {
            x = (&x + self.attention(block, &block.ln_1.forward(&x)?, cache, past)?)?;
            x = (&x + self.mlp(block, &block.ln_2.forward(&x)?)?)?;
        }
        let last = x.narrow(0, tokens.len() - 1, 1)?.contiguous()?;
        self.ln_f.forward(&last)?.matmul(&self.wte.t()?)?.squeeze(0)
    }
}

/// `[rows, keys]`: 0 where the key is at or before the row's own position, the last of `keys` being the last row's.
fn causal_mask(rows: usize, keys: usize) -> candle_core::Result<Tensor> {
    let past = keys - rows;
    let mask: Vec<f32> = (0..rows)
        .flat_map(|row| (0..keys).map(move |key| if key > past + row { f32::NEG_INFINITY } else { 0.0 }))
        .collect();
    Tensor::from_vec(mask, (rows, keys), &Device::Cpu)
}

impl Decoder for Gpt2 {
    fn reset(&mut self) -> Result<()> {
        self.cached = 0;
        Ok(())
    }

    fn forward(&mut self, tokens: &[TokenId]) -> Result<Tensor> {
        let config = &self.weights.config;
        ensure!(!tokens.is_empty(), "GPT-2: no tokens to read; give at least one");
        ensure_fits(self.cached + tokens.len(), config.n_positions)?;
        if let Some(id) = tokens.iter().find(|&&id| id as usize >= config.vocab_size) {
            anyhow::bail!(
                "GPT-2: token {id} is outside the vocabulary of {}; use this model's tokenizer",
                config.vocab_size
            );
        }
        let logits = self.weights.forward(tokens, &self.cache, self.cached)?;
        self.cached += tokens.len();
        Ok(logits)
    }

    fn cached_tokens(&self) -> usize {
        self.cached
    }

    fn truncate(&mut self, tokens: usize) -> Result<bool> {
        ensure!(tokens <= self.cached, "GPT-2: cannot keep {tokens} tokens of a cache that holds {}", self.cached);
        self.cached = tokens;
        Ok(true)
    }

    fn fork(&self) -> Result<Box<dyn Decoder>> {
        Ok(Box::new(Self::over(self.weights.clone())?))
    }

    fn cost(&self) -> Option<Cost> {
        Some(self.weights.config.cost())
    }

    fn weight_bytes(&self) -> u64 {
        4 * self.parameters()
    }

    fn parameters(&self) -> u64 {
        self.weights.config.parameters()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}
