//! GPT-2 on candle: the model as a [`Decoder`]. Its shape is in `config`, what each thread computes in `shard`, for a single
//! token in `step`, for several sequences at once in `together`.

mod arithmetic;
mod config;
mod forward;
mod scheduler;
mod shard;
mod step;
mod together;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;

pub use config::{Activation, Gpt2Config};
pub use scheduler::Gpt2Scheduler;
use shard::{LayerCache, Shard, Shared};

use crate::decoder::{Decoder, Facts};
use crate::engine::ensure_in_vocabulary;
use crate::parallel::Team;
use infergate::engine::{Scheduler, TokenId, ensure_fits};

struct Weights {
    shared: Shared,
    shards: Vec<Shard>,
    team: Team,
}

/// A GPT-2 with one sequence's cache.
pub struct Gpt2 {
    weights: Arc<Weights>,
    /// By rank, then by layer.
    cache: Vec<Vec<LayerCache>>,
    cached: usize,
}

impl Gpt2 {
    /// Loads the weights named as Hugging Face does (with or without the `transformer.` prefix), to compute with `threads`.
    /// A thread has at least one head to itself; more threads than heads are not started.
    ///
    /// # Errors
    /// An impossible or unsupported config, a dtype other than f32, a missing or mis-shaped tensor.
    pub fn load(config: &Gpt2Config, vb: VarBuilder, threads: usize) -> Result<Self> {
        config.validate()?;
        ensure!(threads > 0, "GPT-2: 0 threads; give at least 1");
        ensure!(vb.dtype() == DType::F32, "GPT-2 computes in f32, not {:?}; use --dtype f32", vb.dtype());
        let vb = if vb.contains_tensor("transformer.wte.weight") { vb.pp("transformer") } else { vb };
        let ranks = threads.min(config.n_head).min(config.inner()).min(config.vocab_size);
        let (shared, shards) = shard::load(config, &vb, ranks)?;
        Self::over(Arc::new(Weights { shared, shards, team: Team::new(ranks)? }))
    }

    fn over(weights: Arc<Weights>) -> Result<Self> {
        let cache = caches(&weights)?;
        Ok(Self { weights, cache, cached: 0 })
    }

    /// Room for `requests` requests, computed in one pass over these weights.
    ///
    /// # Errors
    /// For zero requests, or where their caches do not fit the memory there is.
    pub fn serve(&self, requests: usize) -> Result<Gpt2Scheduler> {
        Gpt2Scheduler::new(self.weights.clone(), requests)
    }

    fn config(&self) -> &Gpt2Config {
        &self.weights.shared.config
    }
}

/// An empty cache for one sequence, by rank, then by layer.
fn caches(weights: &Weights) -> Result<Vec<Vec<LayerCache>>> {
    weights.shards.iter().map(|shard| shard.cache(&weights.shared.config)).collect()
}

impl Decoder for Gpt2 {
    fn reset(&mut self) -> Result<()> {
        self.cached = 0;
        Ok(())
    }

    fn forward(&mut self, tokens: &[TokenId]) -> Result<Tensor> {
        let config = self.config();
        ensure!(!tokens.is_empty(), "GPT-2: no tokens to read; give at least one");
        ensure_fits(self.cached + tokens.len(), config.n_positions)?;
        ensure_in_vocabulary(tokens, config.vocab_size)?;
        let (weights, cache, past) = (&self.weights, &self.cache, self.cached);
        let parts = weights.team.run(|member| {
            let rank = member.rank();
            weights.shards[rank].forward(&weights.shared, member, tokens, &cache[rank], past)
        })?;
        let logits = Tensor::cat(&parts, 0)?;
        self.cached += tokens.len();
        Ok(logits)
    }

    fn cached_tokens(&self) -> usize {
        self.cached
    }

    fn truncate(&mut self, tokens: usize) -> Result<bool> {
        ensure!(tokens <= self.cached, "GPT-2: cannot keep {tokens} tokens of a cache that holds {}", self.cached);
        self.cached = tokens;
        Ok(true)
    }

    fn fork(&self) -> Result<Box<dyn Decoder>> {
        Ok(Box::new(Self::over(self.weights.clone())?))
    }

    fn scheduler(&self, requests: usize) -> Option<Result<Box<dyn Scheduler + Send>>> {
        Some(self.serve(requests).map(|scheduler| Box::new(scheduler) as Box<dyn Scheduler + Send>))
    }

    fn facts(&self) -> Facts {
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let parameters = self.config().parameters();
        Facts {
            parameters,
            weight_bytes: 4 * parameters,
            cost: self.config().cost(),
            settings: BTreeMap::from([
                text("ranks", &self.weights.team.ranks().to_string()),
                text("weights_layout", "in_out"),
                text("kv_cache", "preallocated"),
                text("attention", "causal_query_blocks"),
            ]),
        }
    }
}
