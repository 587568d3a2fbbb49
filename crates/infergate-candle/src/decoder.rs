//! [`Decoder`]: what infergate asks of a model on candle. Each architecture's cache rules are hidden behind it.

use std::collections::BTreeMap;

use anyhow::Result;
use candle_core::Tensor;

use infergate::engine::{Cost, Scheduler, TokenId};

/// A decoder-only model with one sequence's KV cache.
pub trait Decoder: Send {
    /// Empties the cache.
    fn reset(&mut self) -> Result<()>;

    /// Reads `tokens` (at least one) behind what the cache holds; gives the last position's logits, f32, shape `[vocab]`.
    fn forward(&mut self, tokens: &[TokenId]) -> Result<Tensor>;

    /// Tokens the cache holds.
    fn cached_tokens(&self) -> usize;

    /// Shortens the cache to its first `tokens`, which the first [`forward`](Decoder::forward) after a reset has read.
    /// `Ok(false)`: this model cannot.
    fn truncate(&mut self, tokens: usize) -> Result<bool>;

    /// The same weights with an empty cache of its own.
    fn fork(&self) -> Result<Box<dyn Decoder>>;

    /// Room for `requests` sequences that are computed together. `None`: this model has none, and takes turns instead.
    fn scheduler(&self, _requests: usize) -> Option<Result<Box<dyn Scheduler + Send>>> {
        None
    }

    /// The work the hardware cannot avoid.
    fn cost(&self) -> Option<Cost>;

    /// Bytes of the weights in memory.
    fn weight_bytes(&self) -> u64;

    /// Number of weights.
    fn parameters(&self) -> u64;

    /// Choices of this implementation that can change speed or output, for the receipt.
    fn settings(&self) -> BTreeMap<String, String>;
}
