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

/// One single token on its way through the layers.
pub struct Lane<'a> {
    cache: &'a [LayerCache],
    past: usize,
    pub x: Scratch,
    pub normed: Scratch,
    pub qkv: Scratch,
    pub mixed: Scratch,
    scores: Scratch,
    pub inner: Scratch,
}

impl<'a> Lane<'a> {
    /// `token` behind `past` cached ones, embedded.
    pub fn new(shard: &Shard, shared: &Shared, token: TokenId, cache: &'a [LayerCache], past: usize) -> Candle<Self> {
        let n_embd = shared.config.n_embd;
        let width = shard.heads * shared.config.head_dim();
        let inner_width = shard.blocks.first().map_or(Ok(0), |block| block.fc.weight.dim(1))?;
        let [mut x, normed, qkv, mixed, scores, inner] =
            [n_embd, n_embd, 3 * width, width, past + 1, inner_width].map(Scratch::zeros);
        for (table, at) in [(&shared.wte, token as usize), (&shared.wpe, past)] {
            add(&mut x, &Numbers::of(table)?.slice()?[at * n_embd..(at + 1) * n_embd]);
        }
        Ok(Self { cache, past, x, normed, qkv, mixed, scores, inner })
    }

    /// Caches its keys and values of a layer, then lets its queries attend to all that the layer has cached.
    pub fn attend(&mut self, shard: &Shard, shared: &Shared, layer: usize) -> Candle<()> {
        let (cache, dim) = (&self.cache[layer], shared.config.head_dim());
        let width = shard.heads * dim;
        let (q, kv) = self.qkv.split_at(width);
        for (cached, new) in [&cache.k, &cache.v].into_iter().zip(kv.chunks_exact(width)) {
            cached.slice_set(&Tensor::from_slice(new, (shard.heads, 1, dim), &Device::Cpu)?, 1, self.past)?;
        }
        attend(q, cache, dim, &mut self.scores, &mut self.mixed)
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
    let epsilon = shared.config.layer_norm_epsilon;
    let mut lane = Lane::new(shard, shared, token, cache, past)?;
    let mut partial = Scratch::zeros(lane.x.len());
    for (layer, block) in shard.blocks.iter().enumerate() {
        normalise(&lane.x, &block.ln_1, epsilon, &mut lane.normed)?;
        block.qkv.apply(&lane.normed, &mut lane.qkv)?;
        lane.attend(shard, shared, layer)?;
        sum_over_ranks(&mut lane.x, &mut partial, member, &block.proj, &lane.mixed)?;

        normalise(&lane.x, &block.ln_2, epsilon, &mut lane.normed)?;
        block.fc.apply(&lane.normed, &mut lane.inner)?;
        bend(shared.config.activation, &mut lane.inner)?;
        sum_over_ranks(&mut lane.x, &mut partial, member, &block.mlp_proj, &lane.inner)?;
    }
    normalise(&lane.x, &shared.ln_f, epsilon, &mut lane.normed)?;
    let head = Numbers::of(&shard.head)?;
    let words = head.slice()?.chunks_exact(lane.x.len());
    let logits: Vec<f32> = words.map(|word| dot(word, &lane.normed)).collect();
    Tensor::from_vec(logits, ((),), &Device::Cpu)
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
fn attend(q: &[f32], cache: &LayerCache, dim: usize, scores: &mut [f32], mixed: &mut [f32]) -> Candle<()> {
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
