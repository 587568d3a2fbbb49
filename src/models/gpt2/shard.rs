//! One thread's part of every block: some heads of the attention and some columns of the MLP.

use std::ops::Range;

use anyhow::Result;
use candle_core::{DType, Device, Tensor};
use candle_nn::{VarBuilder, ops};

use super::super::OneLine as _;
use super::config::{Activation, Gpt2Config};

/// Query rows worked on at once: few enough that scores stay in the cache and little above the diagonal is computed.
const QUERY_BLOCK: usize = 128;

/// Rows of the MLP worked on at once, so that the hidden layer stays in the cache.
const MLP_BLOCK: usize = 128;

/// One thread's weights.
#[derive(Clone)]
pub struct Shard {
    /// By block.
    pub layers: Vec<LayerShard>,
    /// `[width, vocabulary of this shard]`, a view of the embedding.
    pub head: Tensor,
}

/// One thread's part of one block.
#[derive(Clone)]
pub struct LayerShard {
    heads: usize,
    head_width: usize,
    /// `[width, 3 * heads * head_width]`, queries scaled by 1 / sqrt(head_width).
    qkv: Tensor,
    qkv_bias: Tensor,
    /// `[heads * head_width, width]`
    out: Tensor,
    /// `[width, inner of this shard]`
    up: Tensor,
    up_bias: Tensor,
    /// `[inner of this shard, width]`
    down: Tensor,
}

/// One thread's keys and values.
pub struct Cache {
    layers: Vec<LayerCache>,
}

/// Keys and values of one block, each `[heads, context, head_width]`.
pub struct LayerCache {
    keys: Tensor,
    values: Tensor,
}

impl Cache {
    /// Room for the whole context, allocated once.
    pub fn new(config: &Gpt2Config, shard: &Shard) -> Result<Self> {
        let zeros = |heads: usize| {
            Tensor::zeros((heads, config.context, config.head_width()), DType::F32, &Device::Cpu).one_line()
        };
        let layer = |layer: &LayerShard| Ok(LayerCache { keys: zeros(layer.heads)?, values: zeros(layer.heads)? });
        Ok(Self { layers: shard.layers.iter().map(layer).collect::<Result<_>>()? })
    }

    /// Of block `layer`.
    pub fn layer(&self, layer: usize) -> &LayerCache {
        &self.layers[layer]
    }
}

/// `total` split into at most `parts` ranges that differ by one at most; none is empty.
pub fn shares(total: usize, parts: usize) -> Vec<Range<usize>> {
    let parts = parts.clamp(1, total.max(1));
    (0..parts).map(|part| part * total / parts..(part + 1) * total / parts).collect()
}

/// Reads one block's weights and splits them for `threads` threads, by heads and by columns of the MLP.
pub fn split_layer(config: &Gpt2Config, vb: &VarBuilder<'_>, threads: usize) -> Result<Vec<LayerShard>> {
    let (e, d) = (config.width, config.head_width());
    let get = |shape: &[usize], name: &str| vb.get(shape, name).one_line();
    let qkv = get(&[e, 3 * e], "attn.c_attn.weight")?;
    let qkv_bias = get(&[3 * e], "attn.c_attn.bias")?;
    let out = get(&[e, e], "attn.c_proj.weight")?;
    let up = get(&[e, config.inner], "mlp.c_fc.weight")?;
    let up_bias = get(&[config.inner], "mlp.c_fc.bias")?;
    let down = get(&[config.inner, e], "mlp.c_proj.weight")?;

    let heads = shares(config.heads, threads);
    let columns = shares(config.inner, heads.len());
    let scale = 1.0 / (d as f64).sqrt();
    let split = |(heads, columns): (Range<usize>, Range<usize>)| -> candle_core::Result<LayerShard> {
        let (start, width) = (heads.start * d, heads.len() * d);
        let part = |weight: &Tensor, dim: usize| -> candle_core::Result<Tensor> {
            let q = (weight.narrow(dim, start, width)? * scale)?;
            let k = weight.narrow(dim, e + start, width)?;
            let v = weight.narrow(dim, 2 * e + start, width)?;
            Tensor::cat(&[q, k, v], dim)?.contiguous()
        };
        Ok(LayerShard {
            heads: heads.len(),
            head_width: d,
            qkv: part(&qkv, 1)?,
            qkv_bias: part(&qkv_bias, 0)?,
            out: out.narrow(0, start, width)?.force_contiguous()?,
            up: up.narrow(1, columns.start, columns.len())?.force_contiguous()?,
            up_bias: up_bias.narrow(0, columns.start, columns.len())?.force_contiguous()?,
            down: down.narrow(0, columns.start, columns.len())?.force_contiguous()?,
        })
    };
    heads.into_iter().zip(columns).map(|share| split(share).one_line()).collect()
}

impl LayerShard {
    /// This shard's heads over `x` `[tokens, width]` behind `past` cached tokens; gives its addend of the last `queries`
    /// positions' output, `[queries, width]`, bias excluded.
    pub fn attention(&self, x: &Tensor, cache: &LayerCache, past: usize, queries: usize) -> Result<Tensor> {
        self.attend(x, cache, past, queries).one_line()
    }

    fn attend(&self, x: &Tensor, cache: &LayerCache, past: usize, queries: usize) -> candle_core::Result<Tensor> {
        let tokens = x.dim(0)?;
        let qkv = x.matmul(&self.qkv)?.broadcast_add(&self.qkv_bias)?;
        // [tokens, 3 heads, head_width] -> three of [heads, tokens, head_width]
        let qkv = qkv.reshape((tokens, 3 * self.heads, self.head_width))?.transpose(0, 1)?;
        let part = |index: usize| qkv.narrow(0, index * self.heads, self.heads);
        cache.keys.slice_set(&part(1)?.contiguous()?, 1, past)?;
        cache.values.slice_set(&part(2)?.contiguous()?, 1, past)?;
        let q = part(0)?.narrow(1, tokens - queries, queries)?.contiguous()?;

        let first = past + tokens - queries;
        let blocks = (0..queries).step_by(QUERY_BLOCK).map(|start| {
            let rows = QUERY_BLOCK.min(queries - start);
            let context = first + start + rows;
            let keys = cache.keys.narrow(1, 0, context)?;
            let values = cache.values.narrow(1, 0, context)?;
            let mut scores = q.narrow(1, start, rows)?.matmul(&keys.t()?)?;
            if rows > 1 {
                scores = scores.broadcast_add(&causal_mask(rows, context)?)?;
            }
            let attended = ops::softmax_last_dim(&scores)?.matmul(&values)?;
            attended.transpose(0, 1)?.reshape((rows, self.heads * self.head_width))?.matmul(&self.out)
        });
        join_rows(blocks.collect::<candle_core::Result<Vec<_>>>()?)
    }

    /// This shard's columns of the MLP over `x` `[tokens, width]`: its addend of the output, bias excluded.
    pub fn mlp(&self, x: &Tensor, activation: Activation) -> Result<Tensor> {
        let block = |start: usize, rows: usize| {
            let hidden = x.narrow(0, start, rows)?.matmul(&self.up)?.broadcast_add(&self.up_bias)?;
            let hidden = match activation {
                Activation::GeluNew => gelu_new(&hidden)?,
                Activation::Gelu => hidden.gelu_erf()?,
            };
            hidden.matmul(&self.down)
        };
        let tokens = x.dim(0).one_line()?;
        let blocks = (0..tokens).step_by(MLP_BLOCK).map(|start| block(start, MLP_BLOCK.min(tokens - start)));
        blocks.collect::<candle_core::Result<Vec<_>>>().and_then(join_rows).one_line()
    }
}

/// 0.5 x (1 + tanh(u)) = x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3): candle's sigmoid costs one `exp`, its
/// `gelu` a scalar `tanh` of several times that.
fn gelu_new(x: &Tensor) -> candle_core::Result<Tensor> {
    const TWO_SQRT_2_OVER_PI: f64 = 1.595_769_121_605_731;
    let twice_u = (x * x.sqr()?.affine(TWO_SQRT_2_OVER_PI * 0.044_715, TWO_SQRT_2_OVER_PI)?)?;
    x * ops::sigmoid(&twice_u)?
}

/// `[rows, context]`: 0 where a row may look, minus infinity behind it. The last row sees all of the context.
fn causal_mask(rows: usize, context: usize) -> candle_core::Result<Tensor> {
    let past = context - rows;
    let mask = (0..rows)
        .flat_map(|row| (0..context).map(move |column| if column <= past + row { 0.0 } else { f32::NEG_INFINITY }));
    Tensor::from_vec(mask.collect(), (rows, context), &Device::Cpu)
}

fn join_rows(mut blocks: Vec<Tensor>) -> candle_core::Result<Tensor> {
    if blocks.len() == 1 { Ok(blocks.remove(0)) } else { Tensor::cat(&blocks, 0) }
}
