//! [`Decoder`]: what infergate asks of a model on candle. Each architecture's cache rules are hidden behind it.

use std::collections::BTreeMap;

use anyhow::Result;
use candle_core::Tensor;

use infergate::engine::{Cost, Scheduler, TokenId};

/// What a receipt wants to know of a model.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Number of weights.
    pub parameters: u64,
    /// Bytes of the weights in memory.
    pub weight_bytes: u64,
    /// The work the hardware cannot avoid.
    pub cost: Cost,
    /// Choices of this implementation that can change speed or output.
    pub settings: BTreeMap<String, String>,
}

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

    /// What a receipt wants to know of it.
    fn facts(&self) -> Facts;
}
