//! One token through one rank's shard, on plain slices: candle's tensors would cost some 80 small allocations a layer.

use std::ops::{Deref, DerefMut, Range};

use candle_core::{CpuStorage, Device, Storage, StorageRef, Tensor, bail};

use super::Activation;
use super::arithmetic::{add, add_product, dot, fused, sum};
use super::shard::{LayerCache, Shard, Shared, activate};
use crate::parallel::Member;
use infergate::engine::TokenId;

type Candle<T> = candle_core::Result<T>;

/// Two cache lines in numbers, the second one because processors fetch lines in pairs.
const LINE: usize = 32;

/// Numbers that are written again and again, on cache lines that nobody else writes to. As an allocator comes to place them,
/// two ranks can share a line, and vectors can straddle two: by chance, for as long as a process runs, one decodes up to 8 %
/// slower than another of the same binary.
pub struct Scratch {
    numbers: Vec<f32>,
    range: Range<usize>,
}

impl Scratch {
    pub fn zeros(len: usize) -> Self {
        let numbers = vec![0.0_f32; len + 2 * LINE];
        let start = numbers.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        Self { numbers, range: start..start + len }
    }
}

impl Deref for Scratch {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.numbers[self.range.clone()]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.numbers[self.range.clone()]
    }
}

/// The numbers of a contiguous f32 tensor.
pub struct Numbers<'a> {
    storage: StorageRef<'a>,
    range: Range<usize>,
}

impl<'a> Numbers<'a> {
    pub fn of(tensor: &'a Tensor) -> Candle<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        let Some((start, end)) = layout.contiguous_offsets() else {
            bail!("GPT-2: a tensor of the weights is not contiguous")
        };
        Ok(Self { storage, range: start..end })
    }

    pub fn slice(&self) -> Candle<&[f32]> {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(numbers)) => Ok(&numbers[self.range.clone()]),
            _ => bail!("GPT-2 computes in f32 on the CPU"),
        }
    }
}

/// Reads `token` behind `past` cached ones; gives the logits of this rank's part of the vocabulary.
pub fn step(
    shard: &Shard,
    shared: &Shared,
    member: &mut Member,
    token: TokenId,
    cache: &[LayerCache],
    past: usize,
) -> Candle<Tensor> {
    let (n_embd, dim) = (shared.config.n_embd, shared.config.head_dim());
    let width = shard.heads * dim;
    let inner_width = shard.blocks.first().map_or(Ok(0), |block| block.fc.weight.dim(1))?;
    let [mut x, mut normed, mut partial, mut qkv, mut mixed, mut scores, mut inner] =
        [n_embd, n_embd, n_embd, 3 * width, width, past + 1, inner_width].map(Scratch::zeros);
    for (table, at) in [(&shared.wte, token as usize), (&shared.wpe, past)] {
        add(&mut x, &Numbers::of(table)?.slice()?[at * n_embd..(at + 1) * n_embd]);
    }
    for (block, cache) in shard.blocks.iter().zip(cache) {
        normalise(&x, &block.ln_1, shared.config.layer_norm_epsilon, &mut normed)?;
        block.qkv.apply(&normed, &mut qkv)?;
        let (q, kv) = qkv.split_at(width);
        for (cached, new) in [&cache.k, &cache.v].into_iter().zip(kv.chunks_exact(width)) {
            cached.slice_set(&Tensor::from_slice(new, (shard.heads, 1, dim), &Device::Cpu)?, 1, past)?;
        }
        attend(q, cache, dim, &mut scores, &mut mixed)?;
        sum_over_ranks(&mut x, &mut partial, member, &block.proj, &mixed)?;

        normalise(&x, &block.ln_2, shared.config.layer_norm_epsilon, &mut normed)?;
        block.fc.apply(&normed, &mut inner)?;
        bend(shared.config.activation, &mut inner)?;
        sum_over_ranks(&mut x, &mut partial, member, &block.mlp_proj, &inner)?;
    }
    normalise(&x, &shared.ln_f, shared.config.layer_norm_epsilon, &mut normed)?;
    let head = Numbers::of(&shard.head)?;
    let logits: Vec<f32> = head.slice()?.chunks_exact(n_embd).map(|word| dot(word, &normed)).collect();
    let words = logits.len();
    Tensor::from_vec(logits, words, &Device::Cpu)
}

impl super::shard::Linear {
    /// `out = x W + bias`, with W `[x.len(), out.len()]`.
    fn apply(&self, x: &[f32], out: &mut [f32]) -> Candle<()> {
        match &self.bias {
            Some(bias) => out.copy_from_slice(Numbers::of(bias)?.slice()?),
            None => out.fill(0.0),
        }
        add_product(x, Numbers::of(&self.weight)?.slice()?, out);
        Ok(())
    }
}

/// Adds `linear` of `own`, summed over the ranks, to `x`. This rank's part of the sum is made in `partial`.
fn sum_over_ranks(
    x: &mut [f32],
    partial: &mut [f32],
    member: &mut Member,
    linear: &super::shard::Linear,
    own: &[f32],
) -> Candle<()> {
    linear.apply(own, partial)?;
    for partial in member.exchange(Tensor::from_slice(partial, x.len(), &Device::Cpu)?)? {
        add(x, Numbers::of(&partial)?.slice()?);
    }
    Ok(())
}

/// Every head's query attends to all cached keys, its own included. `scores` has one place for each.
pub fn attend(q: &[f32], cache: &LayerCache, dim: usize, scores: &mut [f32], mixed: &mut [f32]) -> Candle<()> {
    let (keys, values) = (Numbers::of(&cache.k)?, Numbers::of(&cache.v)?);
    let positions = cache.k.dim(1)?;
    let of_heads = keys.slice()?.chunks_exact(positions * dim).zip(values.slice()?.chunks_exact(positions * dim));
    for ((q, mixed), (keys, values)) in q.chunks_exact(dim).zip(mixed.chunks_exact_mut(dim)).zip(of_heads) {
        let mut largest = f32::NEG_INFINITY;
        for (score, key) in scores.iter_mut().zip(keys.chunks_exact(dim)) {
            *score = dot(q, key);
            largest = largest.max(*score);
        }
        for score in scores.iter_mut() {
            *score = (*score - largest).exp();
        }
        let total = sum(scores, |score| score);
        mixed.fill(0.0);
        for (score, value) in scores.iter().zip(values.chunks_exact(dim)) {
            let share = score / total;
            for (mixed, value) in mixed.iter_mut().zip(value) {
                *mixed = fused(share, *value, *mixed);
            }
        }
    }
    Ok(())
}

pub fn normalise(x: &[f32], norm: &candle_nn::LayerNorm, epsilon: f64, out: &mut [f32]) -> Candle<()> {
    let Some(bias) = norm.bias() else { bail!("GPT-2: a layer norm has no bias") };
    let (weight, bias) = (Numbers::of(norm.weight())?, Numbers::of(bias)?);
    let n = x.len() as f32;
    let mean = sum(x, |x| x) / n;
    let variance = sum(x, |x| (x - mean) * (x - mean)) / n;
    let scale = 1.0 / (variance + epsilon as f32).sqrt();
    for (((out, x), weight), bias) in out.iter_mut().zip(x).zip(weight.slice()?).zip(bias.slice()?) {
        *out = (x - mean) * scale * weight + bias;
    }
    Ok(())
}

/// The MLP's nonlinearity, in place.
pub fn bend(activation: Activation, inner: &mut [f32]) -> Candle<()> {
    match activation {
        // As in `activate`: x * sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3).
        Activation::GeluNew => {
            let slope = 2.0 * (2.0 / std::f32::consts::PI).sqrt();
            for x in inner {
                let twice_u = slope * (*x + 0.044715 * *x * *x * *x);
                *x /= 1.0 + (-twice_u).exp();
            }
        }
        Activation::Gelu => {
            let bent = activate(activation, &Tensor::from_slice(inner, inner.len(), &Device::Cpu)?)?;
            inner.copy_from_slice(Numbers::of(&bent)?.slice()?);
        }
    }
    Ok(())
}
