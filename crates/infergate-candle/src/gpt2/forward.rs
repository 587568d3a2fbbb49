//! One sequence through a rank: a single token on its way of its own, several as matrices.

use candle_core::{Result as Candle, Tensor};

use super::shard::{LayerCache, Prompt, Shard, Shared};
use super::step::step;
use crate::parallel::Member;
use infergate::engine::TokenId;

impl Shard {
    /// Reads `tokens` behind `past` cached ones; gives the last position's logits for this rank's part of the vocabulary.
    pub fn forward(
        &self,
        shared: &Shared,
        member: &mut Member,
        tokens: &[TokenId],
        cache: &[LayerCache],
        past: usize,
    ) -> Candle<Tensor> {
        if let [token] = *tokens {
            return step(self, shared, member, token, cache, past);
        }
        let mut prompt = Prompt::new(shared, tokens, cache, past)?;
        for layer in 0..self.blocks.len() {
            prompt = prompt.block(self, shared, member, layer)?;
        }
        prompt.logits(self, shared)
    }
}
