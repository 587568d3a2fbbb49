//! Sequences through one rank's shard in one pass: each layer's weights are visited once, for every sequence, before the next
//! layer's.
//!
//! A sequence gets the numbers it would get alone, to the last bit. Prompts go through a layer one by one, by the same products
//! as alone. Single tokens go through it together, in [`Lanes`].

use candle_core::Tensor;

use super::lanes::{Lanes, Single};
use super::shard::{LayerCache, Prompt, Shard, Shared};
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
    let (mut prompts, mut singles, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (place, part) in parts.iter().enumerate() {
        let (cache, past) = (part.cache[rank].as_slice(), part.past);
        if let [token] = *part.tokens {
            singles.push(Single { token, cache, past });
            places.push(place);
        } else {
            prompts.push((place, Prompt::new(shared, part.tokens, cache, past)?));
        }
    }
    let mut lanes = if singles.is_empty() { None } else { Some(Lanes::new(shard, shared, singles)?) };
    for layer in 0..shard.blocks.len() {
        let through =
            prompts.into_iter().map(|(place, prompt)| Ok((place, prompt.block(shard, shared, member, layer)?)));
        prompts = through.collect::<Candle<_>>()?;
        if let Some(lanes) = &mut lanes {
            lanes.block(shard, shared, member, layer)?;
        }
    }
    let mut logits: Vec<(usize, Tensor)> = Vec::with_capacity(parts.len());
    for (place, prompt) in prompts {
        logits.push((place, prompt.logits(shard, shared)?));
    }
    if let Some(lanes) = lanes {
        logits.extend(places.into_iter().zip(lanes.logits(shard, shared)?));
    }
    logits.sort_by_key(|(place, _)| *place);
    Ok(logits.into_iter().map(|(_, logits)| logits).collect())
}
