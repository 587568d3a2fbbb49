//! What one rank holds of a GPT-2 and computes with it: its heads, its part of every MLP, its part of the vocabulary.

use anyhow::{Context, Result};
use candle_core::{DType, Device, Tensor};
use candle_nn::{LayerNorm, Module, VarBuilder, ops};

use super::{Activation, Gpt2Config};
use crate::parallel::{Member, share};
use infergate::engine::TokenId;

/// Queries whose attention is computed at once; keys behind the block's last query are never touched.
const QUERY_BLOCK: usize = 64;

type Candle<T> = candle_core::Result<T>;

/// What every rank needs whole.
pub struct Shared {
    pub config: Gpt2Config,
    pub wte: Tensor,
    pub wpe: Tensor,
    pub ln_f: LayerNorm,
    /// `[QUERY_BLOCK, n_positions + QUERY_BLOCK]`, `-inf` where the column exceeds the row by more than `n_positions`. A
    /// block's causal mask is a part of it.
    mask: Tensor,
}

/// One rank's part of the weights.
pub struct Shard {
    pub heads: usize,
    pub blocks: Vec<Block>,
    /// `[part of the vocabulary, n_embd]`, a view of the token embedding.
    pub head: Tensor,
}

pub struct Block {
    pub ln_1: LayerNorm,
    /// `[n_embd, 3 * heads * head_dim]`: queries (already scaled), keys, values.
    pub qkv: Linear,
    pub proj: Linear,
    pub ln_2: LayerNorm,
    pub fc: Linear,
    pub mlp_proj: Linear,
}

/// Weight `[in, out]` and bias `[1, out]`. The bias of a product whose partial sums are added belongs to rank 0.
pub struct Linear {
    pub weight: Tensor,
    pub bias: Option<Tensor>,
}

/// Keys and values of one rank's heads in one layer, `[heads, n_positions, head_dim]` each.
pub struct LayerCache {
    pub k: Tensor,
    pub v: Tensor,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> Candle<Tensor> {
        let y = x.matmul(&self.weight)?;
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }

    /// The part that computes the output's columns `start..start + len` alone.
    fn columns(&self, start: usize, len: usize) -> Candle<Self> {
        let part = |tensor: &Tensor| tensor.narrow(1, start, len);
        Ok(Self { weight: part(&self.weight)?, bias: self.bias.as_ref().map(part).transpose()? })
    }
}

/// One tensor, with an error that names it.
fn tensor(vb: &VarBuilder, shape: &[usize], name: &str) -> Result<Tensor> {
    vb.get(shape, name).with_context(|| {
        let prefix = vb.prefix();
        let dot = if prefix.is_empty() { "" } else { "." };
        format!("GPT-2 weights: no tensor {prefix}{dot}{name} of shape {shape:?}; the weights do not match config.json")
    })
}

fn layer_norm(vb: &VarBuilder, config: &Gpt2Config, name: &str) -> Result<LayerNorm> {
    let weight = tensor(vb, &[config.n_embd], &format!("{name}.weight"))?;
    let bias = tensor(vb, &[config.n_embd], &format!("{name}.bias"))?;
    Ok(LayerNorm::new(weight, bias, config.layer_norm_epsilon))
}

/// A Conv1D: weight `[input, output]` and bias `[1, output]`.
fn conv1d(vb: &VarBuilder, input: usize, output: usize, name: &str) -> Result<(Tensor, Tensor)> {
    Ok((
        tensor(vb, &[input, output], &format!("{name}.weight"))?,
        tensor(vb, &[output], &format!("{name}.bias"))?.reshape((1, output))?,
    ))
}

/// Loads everything, cut into `ranks` shards.
pub fn load(config: &Gpt2Config, vb: &VarBuilder, ranks: usize) -> Result<(Shared, Vec<Shard>)> {
    let wte = tensor(vb, &[config.vocab_size, config.n_embd], "wte.weight")?;
    let mut shards = Vec::with_capacity(ranks);
    for rank in 0..ranks {
        let words = share(config.vocab_size, ranks, rank);
        shards.push(Shard {
            heads: share(config.n_head, ranks, rank).len(),
            blocks: Vec::with_capacity(config.n_layer),
            head: wte.narrow(0, words.start, words.len())?,
        });
    }
    for layer in 0..config.n_layer {
        for (shard, block) in shards.iter_mut().zip(load_block(config, &vb.pp(format!("h.{layer}")), ranks)?) {
            shard.blocks.push(block);
        }
    }
    let shared = Shared {
        config: config.clone(),
        wte,
        wpe: tensor(vb, &[config.n_positions, config.n_embd], "wpe.weight")?,
        ln_f: layer_norm(vb, config, "ln_f")?,
        mask: mask(config.n_positions)?,
    };
    Ok((shared, shards))
}

fn load_block(config: &Gpt2Config, vb: &VarBuilder, ranks: usize) -> Result<Vec<Block>> {
    let (e, f, dim) = (config.n_embd, config.inner(), config.head_dim());
    let (ln_1, ln_2) = (layer_norm(vb, config, "ln_1")?, layer_norm(vb, config, "ln_2")?);
    let (c_attn, c_attn_bias) = conv1d(vb, e, 3 * e, "attn.c_attn")?;
    let (c_proj, c_proj_bias) = conv1d(vb, e, e, "attn.c_proj")?;
    let (fc, fc_bias) = conv1d(vb, e, f, "mlp.c_fc")?;
    let (mlp_proj, mlp_proj_bias) = conv1d(vb, f, e, "mlp.c_proj")?;
    let scale = if config.scale_attn_weights { 1.0 / (dim as f64).sqrt() } else { 1.0 };
    (0..ranks)
        .map(|rank| {
            let heads = share(config.n_head, ranks, rank);
            let (start, width) = (heads.start * dim, heads.len() * dim);
            let inner = share(f, ranks, rank);
            let of_rank_0 = |bias: &Tensor| (rank == 0).then(|| bias.clone());
            let qkv = |all: &Tensor| -> Candle<Tensor> {
                let part = |i: usize| all.narrow(1, i * e + start, width);
                Tensor::cat(&[(part(0)? * scale)?, part(1)?, part(2)?], 1)?.contiguous()
            };
            Ok(Block {
                ln_1: ln_1.clone(),
                qkv: Linear { weight: qkv(&c_attn)?, bias: Some(qkv(&c_attn_bias)?) },
                proj: Linear { weight: c_proj.narrow(0, start, width)?, bias: of_rank_0(&c_proj_bias) },
                ln_2: ln_2.clone(),
                fc: Linear {
                    weight: fc.narrow(1, inner.start, inner.len())?.contiguous()?,
                    bias: Some(fc_bias.narrow(1, inner.start, inner.len())?.contiguous()?),
                },
                mlp_proj: Linear {
                    weight: mlp_proj.narrow(0, inner.start, inner.len())?,
                    bias: of_rank_0(&mlp_proj_bias),
                },
            })
        })
        .collect()
}

fn mask(n_positions: usize) -> Candle<Tensor> {
    let columns = n_positions + QUERY_BLOCK;
    let values: Vec<f32> = (0..QUERY_BLOCK)
        .flat_map(|row| (0..columns).map(move |col| if col > n_positions + row { f32::NEG_INFINITY } else { 0.0 }))
        .collect();
    Tensor::from_vec(values, (QUERY_BLOCK, columns), &Device::Cpu)
}

impl Shard {
    /// An empty cache for this rank's heads.
    pub fn cache(&self, config: &Gpt2Config) -> Result<Vec<LayerCache>> {
        let zeros = || Tensor::zeros((self.heads, config.n_positions, config.head_dim()), DType::F32, &Device::Cpu);
        self.blocks.iter().map(|_| Ok(LayerCache { k: zeros()?, v: zeros()? })).collect()
    }

    /// Caches `kv`, `[2 * heads, len, head_dim]`, then lets `q`, `[heads, rows, head_dim]`, attend to all up to itself; its
    /// rows are the sequence's last. Gives `[rows, heads * head_dim]`.
    fn attention(&self, shared: &Shared, q: &Tensor, kv: &Tensor, cache: &LayerCache, past: usize) -> Candle<Tensor> {
        let (heads, rows, dim) = q.dims3()?;
        cache.k.slice_set(&kv.narrow(0, 0, heads)?.contiguous()?, 1, past)?;
        cache.v.slice_set(&kv.narrow(0, heads, heads)?.contiguous()?, 1, past)?;
        let first = past + kv.dim(1)? - rows;
        let block = |start: usize| {
            let n = QUERY_BLOCK.min(rows - start);
            let before = first + start;
            let keys = before + n;
            let q = if n < rows { &q.narrow(1, start, n)? } else { q };
            let mut scores = q.matmul(&cache.k.narrow(1, 0, keys)?.t()?)?;
            if n > 1 {
                let mask = shared.mask.narrow(0, 0, n)?.narrow(1, shared.config.n_positions - before, keys)?;
                scores = scores.broadcast_add(&mask)?;
            }
            let mixed = ops::softmax_last_dim(&scores)?.matmul(&cache.v.narrow(1, 0, keys)?)?;
            mixed.transpose(0, 1)?.reshape((n, heads * dim))
        };
        if rows <= QUERY_BLOCK {
            return block(0);
        }
        Tensor::cat(&(0..rows).step_by(QUERY_BLOCK).map(block).collect::<Candle<Vec<_>>>()?, 0)
    }
}

/// Several tokens of one sequence on their way through the layers.
pub struct Prompt<'a> {
    /// `[tokens, n_embd]`; behind the last layer `[1, n_embd]`.
    x: Tensor,
    cache: &'a [LayerCache],
    past: usize,
}

impl<'a> Prompt<'a> {
    /// `tokens` behind `past` cached ones, embedded.
    pub fn new(shared: &Shared, tokens: &[TokenId], cache: &'a [LayerCache], past: usize) -> Candle<Self> {
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let x = (shared.wte.index_select(&ids, 0)? + shared.wpe.narrow(0, past, tokens.len())?)?;
        Ok(Self { x, cache, past })
    }

    /// Goes through one layer.
    pub fn block(self, shard: &Shard, shared: &Shared, member: &mut Member, layer: usize) -> Candle<Self> {
        let Self { mut x, cache, past } = self;
        let (block, heads) = (&shard.blocks[layer], shard.heads);
        let normed = block.ln_1.forward(&x)?;
        let dim = shared.config.head_dim();
        // [n, heads * dim] to [heads, n, dim], for any number of heads.
        let by_head = |x: Tensor| x.reshape((x.dim(0)?, (), dim))?.transpose(0, 1);
        let (q, kv) = if layer + 1 < shard.blocks.len() {
            let qkv = by_head(block.qkv.forward(&normed)?)?;
            (qkv.narrow(0, 0, heads)?, qkv.narrow(0, heads, 2 * heads)?)
        } else {
            // Behind the last layer's keys and values only the last position is of use.
            let (last, width) = (x.dim(0)? - 1, heads * dim);
            x = x.narrow(0, last, 1)?;
            let q = block.qkv.columns(0, width)?.forward(&normed.narrow(0, last, 1)?)?;
            let kv = block.qkv.columns(width, 2 * width)?.forward(&normed)?;
            (by_head(q)?, by_head(kv)?)
        };
        let mixed = shard.attention(shared, &q, &kv, &cache[layer], past)?;
        x = add_all(x, member.exchange(block.proj.forward(&mixed)?)?)?;
        let inner = block.fc.forward(&block.ln_2.forward(&x)?)?;
        let inner = activate(shared.config.activation, &inner)?;
        x = add_all(x, member.exchange(block.mlp_proj.forward(&inner)?)?)?;
        Ok(Self { x, cache, past })
    }

    /// The last position's logits for this rank's part of the vocabulary.
    pub fn logits(self, shard: &Shard, shared: &Shared) -> Candle<Tensor> {
        shared.ln_f.forward(&self.x)?.matmul(&shard.head.t()?)?.squeeze(0)
    }
}

fn add_all(x: Tensor, partials: Vec<Tensor>) -> Candle<Tensor> {
    partials.iter().try_fold(x, |sum, partial| sum + partial)
}

/// The MLP's nonlinearity.
pub fn activate(activation: Activation, x: &Tensor) -> Candle<Tensor> {
    match activation {
        // 0.5 x (1 + tanh(u)) is x * sigmoid(2u), with u = sqrt(2/pi) (x + 0.044715 x^3): candle's own gelu calls tanh for
        // each element, which takes about five times as long as the exp in sigmoid.
        Activation::GeluNew => {
            let slope = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
            let twice_u = x.sqr()?.affine(0.044715 * slope, slope)?.mul(x)?;
            ops::sigmoid(&twice_u)?.mul(x)
        }
        Activation::Gelu => x.gelu_erf(),
    }
}
