//! [`Gpt2Scheduler`]: several requests on one GPT-2, all of them in one pass over the weights.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use candle_core::Tensor;
use infergate::engine::scheduler::{ensure_request_fits, no_free_slot};
use infergate::engine::{Event, RequestId, Scheduler, TokenId};

use super::shard::LayerCache;
use super::together::{self, Part};
use super::{Weights, caches};
use crate::OneLine as _;
use crate::engine::{copy, greedy};
use crate::fits::Needs;

/// Room for so many requests, a cache for each. A step reads the prompts of the requests that are new and the last token of
/// every other one, together.
pub struct Gpt2Scheduler {
    weights: Arc<Weights>,
    slots: Vec<Slot>,
    submitted: u64,
}

struct Slot {
    /// By rank, then by layer.
    cache: Vec<Vec<LayerCache>>,
    /// Behind the last step; empty before the first one.
    logits: Vec<f32>,
    running: Option<Running>,
}

struct Running {
    request: RequestId,
    /// What the next step reads: the prompt, then the token given last.
    pending: Vec<TokenId>,
    /// Tokens the cache holds.
    past: usize,
    given: usize,
    max_tokens: usize,
}

impl Gpt2Scheduler {
    pub(super) fn new(weights: Arc<Weights>, requests: usize) -> Result<Self> {
        ensure!(requests > 0, "a scheduler for zero requests serves nobody; ask for room for at least one");
        let needs = Needs::gpt2(&weights.shared.config, 0);
        let cache = needs.cache.saturating_mul(requests as u64);
        Needs { weights: 0, tables: 0, cache, ..needs }.ensure_fits_memory(&format!("room for {requests} requests"))?;
        let slot = |_| Ok(Slot { cache: caches(&weights)?, logits: Vec::new(), running: None });
        let slots = (0..requests).map(slot).collect::<Result<_>>()?;
        Ok(Self { weights, slots, submitted: 0 })
    }

    /// The logits behind the token that `request`, which is in flight, was given last.
    pub fn logits(&self, request: RequestId) -> Option<&[f32]> {
        let own = |slot: &&Slot| slot.running.as_ref().is_some_and(|r| r.request == request && r.given > 0);
        self.slots.iter().find(own).map(|slot| slot.logits.as_slice())
    }

    /// One pass over the weights: each running slot's logits into its place.
    fn pass(&mut self) -> Result<()> {
        let weights = &self.weights;
        let running = || self.slots.iter().filter_map(|slot| Some((slot, slot.running.as_ref()?)));
        let parts: Vec<Part> =
            running().map(|(slot, run)| Part { tokens: &run.pending, past: run.past, cache: &slot.cache }).collect();
        let by_rank = weights
            .team
            .run(|member| together::forward(&weights.shards[member.rank()], &weights.shared, member, &parts))?;
        let slots = self.slots.iter_mut().filter(|slot| slot.running.is_some());
        for (place, slot) in slots.enumerate() {
            slot.logits.clear();
            for rank in &by_rank {
                let part: &Tensor = &rank[place];
                copy(part, &mut slot.logits).one_line()?;
            }
        }
        Ok(())
    }

    /// Turns the logits of every running slot into its next token.
    fn events(&mut self) -> Result<Vec<Event>> {
        let mut events = Vec::with_capacity(self.slots.len());
        for slot in &mut self.slots {
            let Some(run) = &mut slot.running else { continue };
            let (token, _) = greedy(&slot.logits)?;
            run.past += run.pending.len();
            run.pending.clear();
            run.pending.push(token);
            let (request, index) = (run.request, run.given);
            run.given += 1;
            let finished = run.given == run.max_tokens;
            events.push(Event { request, token, index, age_ns: 0, finished });
            if finished {
                slot.running = None;
            }
        }
        Ok(events)
    }
}

impl Scheduler for Gpt2Scheduler {
    fn capacity(&self) -> usize {
        self.slots.len()
    }

    fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| slot.running.is_some()).count()
    }

    fn submit(&mut self, prompt: &[TokenId], max_tokens: usize) -> Result<RequestId> {
        let config = &self.weights.shared.config;
        ensure_request_fits(prompt, max_tokens, config.n_positions)?;
        if let Some(id) = prompt.iter().find(|&&id| id as usize >= config.vocab_size) {
            bail!("token {id} is outside the model's vocabulary; ids are below {}", config.vocab_size);
        }
        let capacity = self.capacity();
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.running.is_none()) else {
            bail!(no_free_slot(capacity))
        };
        let request = RequestId(self.submitted);
        self.submitted += 1;
        slot.running = Some(Running { request, pending: prompt.to_vec(), past: 0, given: 0, max_tokens });
        Ok(request)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        if self.in_flight() == 0 {
            return Ok(Vec::new());
        }
        let events = self.pass().and_then(|()| self.events());
        if events.is_err() {
            for slot in &mut self.slots {
                slot.running = None;
            }
        }
        events
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        let own = |slot: &&mut Slot| slot.running.as_ref().is_some_and(|run| run.request == request);
        let Some(slot) = self.slots.iter_mut().find(own) else { return false };
        slot.running = None;
        true
    }

    fn batches(&self) -> Option<bool> {
        Some(true)
    }

    fn kv_bytes_per_request(&self) -> Option<u64> {
        Some(Needs::gpt2(&self.weights.shared.config, 0).cache)
    }
}
