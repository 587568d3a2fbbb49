//! [`Adapter`]: a model of candle-transformers as a [`Decoder`].

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use candle_core::{DType, Device, Tensor};

use crate::OneLine as _;
use crate::config::Family;
use crate::decoder::Decoder;
use infergate::engine::{Cost, TokenId};

/// What candle-transformers' models have in common: weights behind `Arc`s, and a KV cache inside.
pub trait Stateful: Sized + Send + 'static {
    /// Runs `ids` (shape `[1, n]`) at position `position`; logits of the last position, any shape of `vocab` numbers.
    fn run(&mut self, ids: &Tensor, position: usize) -> candle_core::Result<Tensor>;

    /// Empties the cache.
    fn clear(&mut self);

    /// The same weights with the same cache, if that costs next to nothing. Caches that grow by `Tensor::cat` can be
    /// cloned: nothing ever writes into a tensor that a clone holds.
    fn snapshot(&self) -> Option<Self>;

    /// The same weights for another sequence, its cache in any state.
    fn share(&self) -> Option<Self> {
        self.snapshot()
    }
}

/// What a receipt wants to know of the weights.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Number of weights.
    pub parameters: u64,
    /// Bytes of the weights in memory.
    pub weight_bytes: u64,
    /// The unavoidable work.
    pub cost: Cost,
    /// Choices that can change speed or output.
    pub settings: BTreeMap<String, String>,
}

/// One sequence on a model of candle-transformers.
pub struct Adapter<M> {
    model: M,
    facts: Facts,
    cached_tokens: usize,
    /// The model with the cache as the first forward after a reset left it, and how many tokens that were.
    after_prompt: Option<(usize, M)>,
}

impl<M: Stateful> Adapter<M> {
    /// Wraps a model whose cache is empty.
    pub fn new(model: M, facts: Facts) -> Self {
        Self { model, facts, cached_tokens: 0, after_prompt: None }
    }
}

impl<M: Stateful> Decoder for Adapter<M> {
    fn reset(&mut self) -> Result<()> {
        self.model.clear();
        self.cached_tokens = 0;
        self.after_prompt = None;
        Ok(())
    }

    fn forward(&mut self, tokens: &[TokenId]) -> Result<Tensor> {
        let ids = Tensor::new(tokens, &Device::Cpu).and_then(|ids| ids.unsqueeze(0)).one_line()?;
        let logits = self.model.run(&ids, self.cached_tokens).one_line()?;
        let first = self.cached_tokens == 0;
        self.cached_tokens += tokens.len();
        if first {
            self.after_prompt = self.model.snapshot().map(|model| (self.cached_tokens, model));
        }
        logits.flatten_all().and_then(|l| l.to_dtype(DType::F32)).one_line()
    }

    fn cached_tokens(&self) -> usize {
        self.cached_tokens
    }

    fn truncate(&mut self, tokens: usize) -> Result<bool> {
        if tokens == self.cached_tokens {
            return Ok(true);
        }
        let kept = self.after_prompt.as_ref().filter(|(kept, _)| *kept == tokens);
        let Some(model) = kept.and_then(|(_, model)| model.snapshot()) else { return Ok(false) };
        self.model = model;
        self.cached_tokens = tokens;
        Ok(true)
    }

    fn fork(&self) -> Result<Box<dyn Decoder>> {
        let Some(mut model) = self.model.share() else {
            bail!("this model of candle-transformers cannot share its weights with a second sequence")
        };
        model.clear();
        Ok(Box::new(Self::new(model, self.facts.clone())))
    }

    fn cost(&self) -> Option<Cost> {
        Some(self.facts.cost)
    }

    fn weight_bytes(&self) -> u64 {
        self.facts.weight_bytes
    }

    fn parameters(&self) -> u64 {
        self.facts.parameters
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.facts.settings.clone()
    }
}

/// What every adapter to candle-transformers says of itself in a receipt. `kind` stands before the family's name there.
pub fn settings(kind: &str, family: Family) -> BTreeMap<String, String> {
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    let implementation = format!("candle-transformers {kind}{}", family.name());
    // That of qwen3 depends on what is read.
    let attention = (family != Family::Qwen3).then(|| pair("attention", "whole_score_matrix"));
    let is_preallocated = kind == "quantized_" && family == Family::Qwen3;
    let cache = if is_preallocated { "f32, preallocated" } else { "f32, concatenated at each step" };
    let known = [pair("implementation", &implementation), pair("kv_cache", cache)];
    known.into_iter().chain(attention).collect()
}
