//! GPT-2 on candle, f32: pre-norm blocks, learned positions, Conv1D weights `[in, out]`, head tied to the embedding.
//!
//! Read in this order: [`Gpt2Config`], `Shard` (attention, then MLP), [`Gpt2`]. The weights are split over threads as
//! Megatron splits them over devices (Shoeybi et al. 2019): each thread owns some heads and some columns of the MLP, and
//! one sum joins them. candle runs a product with one row on one thread, and most element-wise operations too; split like
//! this, all of a block runs on every thread and decoding uses every core's memory bandwidth.

pub mod config;
mod shard;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use candle_core::{DType, Tensor};
use candle_nn::{VarBuilder, ops};
use rayon::prelude::*;

pub use config::{Activation, Gpt2Config};
use shard::{Cache, Shard, shares};

use super::OneLine as _;
use super::decoder::Decoder;
use crate::engine::{Cost, TokenId};

/// A layer norm's weight and bias, each `[width]`.
#[derive(Clone)]
struct Norm {
    weight: Tensor,
    bias: Tensor,
    epsilon: f32,
}

impl Norm {
    fn load(config: &Gpt2Config, vb: &VarBuilder<'_>) -> Result<Self> {
        let get = |name| vb.get(config.width, name).one_line();
        Ok(Self { weight: get("weight")?, bias: get("bias")?, epsilon: config.epsilon })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::layer_norm(x, &self.weight, &self.bias, self.epsilon).one_line()
    }
}

/// What a block does not share out: its norms and the biases behind its sums.
#[derive(Clone)]
struct Block {
    norm_1: Norm,
    norm_2: Norm,
    attention_bias: Tensor,
    mlp_bias: Tensor,
}

/// GPT-2 with one sequence's cache.
pub struct Gpt2 {
    config: Gpt2Config,
    /// Tokens, `[vocab, width]`; the head's shards are views of it.
    embedding: Tensor,
    /// Positions, `[context, width]`.
    positions: Tensor,
    blocks: Vec<Block>,
    norm: Norm,
    /// By thread.
    shards: Vec<Shard>,
    /// By thread, as `shards`.
    caches: Vec<Cache>,
    cached_tokens: usize,
}

impl Gpt2 {
    /// Loads the weights from `vb`, under Hugging Face's names with or without `transformer.` in front, and splits them for
    /// `threads` threads.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape, which names it.
    pub fn load(config: &Gpt2Config, vb: VarBuilder<'_>, threads: usize) -> Result<Self> {
        let vb = if vb.contains_tensor("transformer.wte.weight") { vb.pp("transformer") } else { vb };
        let embedding = vb.get((config.vocab, config.width), "wte.weight").one_line()?;
        let positions = vb.get((config.context, config.width), "wpe.weight").one_line()?;
        let layer = |layer: usize| -> Result<(Block, Vec<shard::LayerShard>)> {
            let vb = vb.pp(format!("h.{layer}"));
            let block = Block {
                norm_1: Norm::load(config, &vb.pp("ln_1"))?,
                norm_2: Norm::load(config, &vb.pp("ln_2"))?,
                attention_bias: vb.get(config.width, "attn.c_proj.bias").one_line()?,
                mlp_bias: vb.get(config.width, "mlp.c_proj.bias").one_line()?,
            };
            Ok((block, shard::split_layer(config, &vb, threads)?))
        };
        let mut blocks = Vec::with_capacity(config.layers);
        let mut layers_by_shard: Vec<Vec<shard::LayerShard>> = Vec::new();
        for index in 0..config.layers {
            let (block, shards) = layer(index)?;
            blocks.push(block);
            layers_by_shard.resize_with(shards.len(), Vec::new);
            for (of_shard, shard) in layers_by_shard.iter_mut().zip(shards) {
                of_shard.push(shard);
            }
        }
        let rows = shares(config.vocab, layers_by_shard.len());
        let shards = layers_by_shard
            .into_iter()
            .zip(rows)
            .map(|(layers, rows)| {
                let head = embedding.narrow(0, rows.start, rows.len()).and_then(|rows| rows.t()).one_line()?;
                Ok(Shard { layers, head })
            })
            .collect::<Result<Vec<_>>>()?;
        let caches = shards.iter().map(|shard| Cache::new(config, shard)).collect::<Result<_>>()?;
        let norm = Norm::load(config, &vb.pp("ln_f"))?;
        Ok(Self { config: config.clone(), embedding, positions, blocks, norm, shards, caches, cached_tokens: 0 })
    }

    /// `[tokens, width]`: embeddings of the tokens and of where they stand.
    fn embed(&self, tokens: &[TokenId]) -> Result<Tensor> {
        let ids = Tensor::new(tokens, self.embedding.device()).one_line()?;
        let positions = self.positions.narrow(0, self.cached_tokens, tokens.len()).one_line()?;
        (self.embedding.index_select(&ids, 0).one_line()? + positions).one_line()
    }

    /// Runs `work` on every shard at once and sums what comes back.
    fn sum_over_shards(&self, work: impl Fn(&Shard, &Cache) -> Result<Tensor> + Sync) -> Result<Tensor> {
        let parts = self.on_shards(work)?;
        let mut parts = parts.into_iter();
        let first = parts.next();
        let first = first.ok_or_else(|| anyhow::anyhow!("GPT-2 has no shards"))?;
        parts.try_fold(first, |sum, part| (sum + part).one_line())
    }

    fn on_shards(&self, work: impl Fn(&Shard, &Cache) -> Result<Tensor> + Sync) -> Result<Vec<Tensor>> {
        self.shards.par_iter().zip(&self.caches).with_max_len(1).map(|(shard, cache)| work(shard, cache)).collect()
    }

    fn forward_in_pool(&self, tokens: &[TokenId]) -> Result<Tensor> {
        let past = self.cached_tokens;
        let mut x = self.embed(tokens)?;
        for (layer, block) in self.blocks.iter().enumerate() {
            // Only the last position's logits are asked for: in the last block the others need keys and values alone.
            let queries = if layer + 1 == self.blocks.len() { 1 } else { tokens.len() };
            let normed = block.norm_1.forward(&x)?;
            let attended = self.sum_over_shards(|shard, cache| {
                shard.layers[layer].attention(&normed, cache.layer(layer), past, queries)
            })?;
            if queries < tokens.len() {
                x = x.narrow(0, tokens.len() - queries, queries).one_line()?;
            }
            x = (x + attended).and_then(|x| x.broadcast_add(&block.attention_bias)).one_line()?;
            let normed = block.norm_2.forward(&x)?;
            let activation = self.config.activation;
            let mlp = self.sum_over_shards(|shard, _| shard.layers[layer].mlp(&normed, activation))?;
            x = (x + mlp).and_then(|x| x.broadcast_add(&block.mlp_bias)).one_line()?;
        }
        let last = self.norm.forward(&x)?;
        let logits = self.on_shards(|shard, _| last.matmul(&shard.head).one_line())?;
        Tensor::cat(&logits, 1).and_then(|logits| logits.squeeze(0)).one_line()
    }
}

impl Decoder for Gpt2 {
    fn reset(&mut self) -> Result<()> {
        self.cached_tokens = 0;
        Ok(())
    }

    fn forward(&mut self, tokens: &[TokenId]) -> Result<Tensor> {
        crate::engine::ensure_fits(self.cached_tokens + tokens.len(), self.config.context)?;
        ensure!(!tokens.is_empty(), "no tokens to read; give at least one");
        // Inside the pool a join costs microseconds; from outside each would wake it anew.
        let mut logits = None;
        rayon::scope(|_| logits = Some(self.forward_in_pool(tokens)));
        let logits = logits.ok_or_else(|| anyhow::anyhow!("GPT-2 gave no logits"))??;
        self.cached_tokens += tokens.len();
        Ok(logits)
    }

    fn cached_tokens(&self) -> usize {
        self.cached_tokens
    }

    fn truncate(&mut self, tokens: usize) -> Result<bool> {
        ensure!(tokens <= self.cached_tokens, "the cache holds {} tokens, not {tokens}", self.cached_tokens);
        self.cached_tokens = tokens;
        Ok(true)
    }

    fn fork(&self) -> Result<Box<dyn Decoder>> {
        let caches = self.shards.iter().map(|shard| Cache::new(&self.config, shard)).collect::<Result<_>>()?;
        Ok(Box::new(Self {
            config: self.config.clone(),
            embedding: self.embedding.clone(),
            positions: self.positions.clone(),
            blocks: self.blocks.clone(),
            norm: self.norm.clone(),
            shards: self.shards.clone(),
            caches,
            cached_tokens: 0,
        }))
    }

    fn cost(&self) -> Option<Cost> {
        Some(self.config.cost())
    }

    fn weight_bytes(&self) -> u64 {
        self.config.parameters() * DType::F32.size_in_bytes() as u64
    }

    fn parameters(&self) -> u64 {
        self.config.parameters()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("implementation".into(), "infergate gpt2".into()),
            ("kv_cache".into(), format!("f32, preallocated for {} tokens", self.config.context)),
            ("shards".into(), self.shards.len().to_string()),
        ])
    }
}
