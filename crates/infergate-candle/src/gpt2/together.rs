//! Several sequences through one rank's shard in one pass: each layer's weights are visited once, for every sequence, before
//! the next layer's.
//!
//! A sequence gets the numbers it would get alone, to the last bit. Prompts go through a layer one by one, by the same products
//! as alone. Single tokens go through it together: a row of weights is read once and used for all of them, and what is added
//! to a number is added in the same order as in `step`.

use candle_core::{Device, Tensor};

use super::arithmetic::{add, add_products, dots};
use super::shard::{LayerCache, Linear, Prompt, Shard, Shared};
use super::step::{Lane, Numbers, Scratch, bend, normalise};
use crate::parallel::Member;
use infergate::engine::TokenId;

type Candle<T> = candle_core::Result<T>;

/// What one sequence reads in a pass: its prompt, or the token it was given last.
pub struct Part<'a> {
    pub tokens: &'a [TokenId],
    /// Tokens the cache holds.
    pub past: usize,
    /// By rank, then by layer.
    pub cache: &'a [Vec<LayerCache>],
}

/// Reads every part; gives for each the last position's logits for this rank's part of the vocabulary.
pub fn forward(shard: &Shard, shared: &Shared, member: &mut Member, parts: &[Part]) -> Candle<Vec<Tensor>> {
    let rank = member.rank();
    let (mut prompts, mut lanes, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (place, part) in parts.iter().enumerate() {
        let cache = part.cache[rank].as_slice();
        if let [token] = *part.tokens {
            lanes.push(Lane::new(shard, shared, token, cache, part.past)?);
            places.push(place);
        } else {
            prompts.push((place, Prompt::new(shared, part.tokens, cache, part.past)?));
        }
    }
    for layer in 0..shard.blocks.len() {
        let through =
            prompts.into_iter().map(|(place, prompt)| Ok((place, prompt.block(shard, shared, member, layer)?)));
        prompts = through.collect::<Candle<_>>()?;
        block(shard, shared, member, layer, &mut lanes)?;
    }
    let mut logits: Vec<(usize, Tensor)> = Vec::with_capacity(parts.len());
    for (place, prompt) in prompts {
        logits.push((place, prompt.logits(shard, shared)?));
    }
    logits.extend(places.into_iter().zip(head(shard, shared, &mut lanes)?));
    logits.sort_by_key(|(place, _)| *place);
    Ok(logits.into_iter().map(|(_, logits)| logits).collect())
}

fn block(shard: &Shard, shared: &Shared, member: &mut Member, layer: usize, lanes: &mut [Lane]) -> Candle<()> {
    if lanes.is_empty() {
        return Ok(());
    }
    let (block, epsilon) = (&shard.blocks[layer], shared.config.layer_norm_epsilon);
    for lane in lanes.iter_mut() {
        normalise(&lane.x, &block.ln_1, epsilon, &mut lane.normed)?;
    }
    apply(&block.qkv, lanes.iter_mut().map(|lane| (&*lane.normed, &mut *lane.qkv)))?;
    for lane in lanes.iter_mut() {
        lane.attend(shard, shared, layer)?;
    }
    sum_over_ranks(member, &block.proj, lanes, |lane| &lane.mixed)?;
    for lane in lanes.iter_mut() {
        normalise(&lane.x, &block.ln_2, epsilon, &mut lane.normed)?;
    }
    apply(&block.fc, lanes.iter_mut().map(|lane| (&*lane.normed, &mut *lane.inner)))?;
    for lane in lanes.iter_mut() {
        bend(shared.config.activation, &mut lane.inner)?;
    }
    sum_over_ranks(member, &block.mlp_proj, lanes, |lane| &lane.inner)
}

/// Adds `linear` of `own`, summed over the ranks, to every lane's `x`, in one meeting.
fn sum_over_ranks<'a>(
    member: &mut Member,
    linear: &Linear,
    lanes: &mut [Lane<'a>],
    own: impl for<'b> Fn(&'b Lane<'a>) -> &'b [f32],
) -> Candle<()> {
    let n_embd = lanes[0].x.len();
    let mut partial = Scratch::zeros(lanes.len() * n_embd);
    apply(linear, lanes.iter().map(&own).zip(partial.chunks_exact_mut(n_embd)))?;
    for partial in member.exchange(Tensor::from_slice(&partial, partial.len(), &Device::Cpu)?)? {
        for (lane, partial) in lanes.iter_mut().zip(Numbers::of(&partial)?.slice()?.chunks_exact(n_embd)) {
            add(&mut lane.x, partial);
        }
    }
    Ok(())
}

fn head(shard: &Shard, shared: &Shared, lanes: &mut [Lane]) -> Candle<Vec<Tensor>> {
    for lane in lanes.iter_mut() {
        normalise(&lane.x, &shared.ln_f, shared.config.layer_norm_epsilon, &mut lane.normed)?;
    }
    let head = Numbers::of(&shard.head)?;
    let normed: Vec<&[f32]> = lanes.iter().map(|lane| &*lane.normed).collect();
    let words = head.slice()?.len() / shared.config.n_embd.max(1);
    let mut logits: Vec<Vec<f32>> = lanes.iter().map(|_| Vec::with_capacity(words)).collect();
    dots(head.slice()?, &normed, &mut logits);
    logits.into_iter().map(|logits| Tensor::from_vec(logits, ((),), &Device::Cpu)).collect()
}

/// `out = x W + bias` for every pair of `x` and `out`, W read once.
fn apply<'a>(linear: &Linear, pairs: impl Iterator<Item = (&'a [f32], &'a mut [f32])>) -> Candle<()> {
    let bias = linear.bias.as_ref().map(Numbers::of).transpose()?;
    let mut pairs: Vec<(&[f32], &mut [f32])> = pairs.collect();
    for (_, out) in &mut pairs {
        match &bias {
            Some(bias) => out.copy_from_slice(bias.slice()?),
            None => out.fill(0.0),
        }
    }
    add_products(Numbers::of(&linear.weight)?.slice()?, &mut pairs);
    Ok(())
}
