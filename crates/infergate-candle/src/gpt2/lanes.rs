//! Single tokens through one rank's shard, on plain slices: candle's tensors would cost some 80 small allocations a layer.

use std::ops::{Deref, DerefMut, Range};

use candle_core::{CpuStorage, Device, Storage, StorageRef, Tensor, bail};

use super::Activation;
use super::arithmetic::{add, add_products, dot, dots, fused, sum};
use super::shard::{LayerCache, Linear, Shard, Shared, activate};
use crate::parallel::Member;
use infergate::engine::TokenId;

type Candle<T> = candle_core::Result<T>;

/// Two cache lines in numbers, the second one because processors fetch lines in pairs.
const LINE: usize = 32;

/// Numbers that are written again and again, on cache lines that nobody else writes to. As an allocator comes to place them,
/// two ranks can share a line, and vectors can straddle two: by chance, for as long as a process runs, one decodes up to 8 %
/// slower than another of the same binary.
struct Scratch {
    numbers: Vec<f32>,
    range: Range<usize>,
}

impl Scratch {
    fn zeros(len: usize) -> Self {
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
struct Numbers<'a> {
    storage: StorageRef<'a>,
    range: Range<usize>,
}

impl<'a> Numbers<'a> {
    fn of(tensor: &'a Tensor) -> Candle<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        let Some((start, end)) = layout.contiguous_offsets() else {
            bail!("GPT-2: a tensor of the weights is not contiguous")
        };
        Ok(Self { storage, range: start..end })
    }

    fn slice(&self) -> Candle<&[f32]> {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(numbers)) => Ok(&numbers[self.range.clone()]),
            _ => bail!("GPT-2 computes in f32 on the CPU"),
        }
    }
}

/// The next token of one sequence.
pub struct Single<'a> {
    pub token: TokenId,
    /// By layer.
    pub cache: &'a [LayerCache],
    /// Tokens the cache holds.
    pub past: usize,
}

/// Single tokens of several sequences on their way through the layers, a row of numbers each: a row of weights is read once and
/// used for all of them.
pub struct Lanes<'a> {
    singles: Vec<Single<'a>>,
    x: Scratch,
    normed: Scratch,
    qkv: Scratch,
    mixed: Scratch,
    inner: Scratch,
    /// What this rank adds to a sum over the ranks.
    partial: Scratch,
    scores: Scratch,
}

impl<'a> Lanes<'a> {
    /// Each token behind what its sequence has cached, embedded.
    pub fn new(shard: &Shard, shared: &Shared, singles: Vec<Single<'a>>) -> Candle<Self> {
        let n_embd = shared.config.n_embd;
        let width = shard.heads * shared.config.head_dim();
        let inner_width = shard.blocks.first().map_or(Ok(0), |block| block.fc.weight.dim(1))?;
        let longest = singles.iter().map(|single| single.past + 1).max().unwrap_or(0);
        let scratch = |columns: usize| Scratch::zeros(singles.len() * columns);
        let mut x = scratch(n_embd);
        for (single, x) in singles.iter().zip(x.chunks_exact_mut(n_embd)) {
            for (table, at) in [(&shared.wte, single.token as usize), (&shared.wpe, single.past)] {
                add(x, &Numbers::of(table)?.slice()?[at * n_embd..(at + 1) * n_embd]);
            }
        }
        Ok(Self {
            x,
            normed: scratch(n_embd),
            qkv: scratch(3 * width),
            mixed: scratch(width),
            inner: scratch(inner_width),
            partial: scratch(n_embd),
            scores: Scratch::zeros(longest),
            singles,
        })
    }

    /// Goes through one layer.
    pub fn block(&mut self, shard: &Shard, shared: &Shared, member: &mut Member, layer: usize) -> Candle<()> {
        let (block, epsilon) = (&shard.blocks[layer], shared.config.layer_norm_epsilon);
        normalise(&self.x, &block.ln_1, epsilon, &mut self.normed)?;
        block.qkv.apply(&self.normed, &mut self.qkv)?;
        self.attend(shard, shared, layer)?;
        block.proj.apply(&self.mixed, &mut self.partial)?;
        self.add_partials(member)?;

        normalise(&self.x, &block.ln_2, epsilon, &mut self.normed)?;
        block.fc.apply(&self.normed, &mut self.inner)?;
        bend(shared.config.activation, &mut self.inner)?;
        block.mlp_proj.apply(&self.inner, &mut self.partial)?;
        self.add_partials(member)
    }

    /// Caches each token's keys and values of a layer, then lets its queries attend to all that the layer has cached.
    fn attend(&mut self, shard: &Shard, shared: &Shared, layer: usize) -> Candle<()> {
        let dim = shared.config.head_dim();
        let width = shard.heads * dim;
        let rows = self.qkv.chunks_exact(3 * width).zip(self.mixed.chunks_exact_mut(width));
        for (single, (qkv, mixed)) in self.singles.iter().zip(rows) {
            let (cache, (q, kv)) = (&single.cache[layer], qkv.split_at(width));
            for (cached, new) in [&cache.k, &cache.v].into_iter().zip(kv.chunks_exact(width)) {
                cached.slice_set(&Tensor::from_slice(new, (shard.heads, 1, dim), &Device::Cpu)?, 1, single.past)?;
            }
            attend(q, cache, dim, &mut self.scores[..=single.past], mixed)?;
        }
        Ok(())
    }

    /// Adds what the ranks have in `partial`.
    fn add_partials(&mut self, member: &mut Member) -> Candle<()> {
        let own = Tensor::from_slice(&self.partial, self.partial.len(), &Device::Cpu)?;
        for partial in member.exchange(own)? {
            add(&mut self.x, Numbers::of(&partial)?.slice()?);
        }
        Ok(())
    }

    /// Each token's logits for this rank's part of the vocabulary.
    pub fn logits(mut self, shard: &Shard, shared: &Shared) -> Candle<Vec<Tensor>> {
        normalise(&self.x, &shared.ln_f, shared.config.layer_norm_epsilon, &mut self.normed)?;
        let (head, words) = (Numbers::of(&shard.head)?, shard.head.dim(0)?);
        let mut logits: Vec<Vec<f32>> = self.singles.iter().map(|_| Vec::with_capacity(words)).collect();
        dots(head.slice()?, &self.normed, shared.config.n_embd, &mut logits);
        logits.into_iter().map(|logits| Tensor::new(logits, &Device::Cpu)).collect()
    }
}

impl Linear {
    /// `out = x W + bias` for each row of `x` and of `out`, W read once.
    fn apply(&self, x: &[f32], out: &mut [f32]) -> Candle<()> {
        let columns = self.weight.dim(1)?;
        match &self.bias {
            Some(bias) => {
                let bias = Numbers::of(bias)?;
                for row in out.chunks_exact_mut(columns) {
                    row.copy_from_slice(bias.slice()?);
                }
            }
            None => out.fill(0.0),
        }
        add_products(x, Numbers::of(&self.weight)?.slice()?, columns, out);
        Ok(())
    }
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

/// The layer norm of each row of `x`.
fn normalise(x: &[f32], norm: &candle_nn::LayerNorm, epsilon: f64, out: &mut [f32]) -> Candle<()> {
    let Some(bias) = norm.bias() else { bail!("GPT-2: a layer norm has no bias") };
    let (weight, bias) = (Numbers::of(norm.weight())?, Numbers::of(bias)?);
    let (weight, bias) = (weight.slice()?, bias.slice()?);
    for (x, out) in x.chunks_exact(weight.len()).zip(out.chunks_exact_mut(weight.len())) {
        let n = x.len() as f32;
        let mean = sum(x, |x| x) / n;
        let variance = sum(x, |x| (x - mean) * (x - mean)) / n;
        let scale = 1.0 / (variance + epsilon as f32).sqrt();
        for (((out, x), weight), bias) in out.iter_mut().zip(x).zip(weight).zip(bias) {
            *out = (x - mean) * scale * weight + bias;
        }
    }
    Ok(())
}

/// The MLP's nonlinearity, in place.
fn bend(activation: Activation, inner: &mut [f32]) -> Candle<()> {
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
