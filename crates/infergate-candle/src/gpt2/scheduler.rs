//! [`Gpt2Scheduler`]: several requests on one GPT-2, all of them in one pass over the weights.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use candle_core::Tensor;
use infergate::engine::scheduler::{ensure_request_fits, no_free_slot};
use infergate::engine::{Event, RequestId, Scheduler, TokenId};

use super::shard::LayerCache;
use super::together::{self, Part};
use super::{Weights, caches};
use crate::engine::{copy, ensure_in_vocabulary, greedy};
use crate::first_line;
use crate::heap::ensure_fits;

/// Prompt tokens that one step reads; more only where a single prompt has more. Everybody's next token waits for them.
const PROMPT_TOKENS_A_STEP: usize = 512;

/// Room for so many requests, a cache for each. A step reads the last token of every request whose prompt was read, and as
/// many of the other prompts as it may, first come first served, together.
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
        let cache_bytes = weights.shared.config.cache_bytes() * requests as u64;
        ensure_fits(&format!("room for {requests} requests"), cache_bytes)?;
        let slot = |_| Ok(Slot { cache: caches(&weights)?, logits: Vec::new(), running: None });
        let slots = (0..requests).map(slot).collect::<Result<_>>()?;
        Ok(Self { weights, slots, submitted: 0 })
    }

    /// The logits behind the token that `request`, which is in flight, was given last.
    pub fn logits(&self, request: RequestId) -> Option<&[f32]> {
        let own = |slot: &&Slot| slot.running.as_ref().is_some_and(|r| r.request == request && r.given > 0);
        self.slots.iter().find(own).map(|slot| slot.logits.as_slice())
    }

    /// The slots that the next pass works on: a hundred prompts at once would keep those who read along waiting for all of
    /// them, and the first prompt's own first token, too.
    fn choose(&self) -> Vec<usize> {
        let (mut chosen, mut prompts) = (Vec::new(), Vec::new());
        for (at, slot) in self.slots.iter().enumerate() {
            match &slot.running {
                Some(run) if run.given > 0 => chosen.push(at),
                Some(run) => prompts.push((at, run)),
                None => {}
            }
        }
        prompts.sort_by_key(|(_, run)| run.request);
        let mut read = 0;
        for (at, run) in prompts {
            if read > 0 && read + run.pending.len() > PROMPT_TOKENS_A_STEP {
                break;
            }
            read += run.pending.len();
            chosen.push(at);
        }
        chosen.sort_unstable();
        chosen
    }

    /// One pass over the weights: the logits of each chosen slot, in order, into its place.
    fn pass(&mut self, chosen: &[usize]) -> Result<()> {
        let weights = &self.weights;
        let part = |at: &usize| {
            let slot = &self.slots[*at];
            let run = slot.running.as_ref()?;
            Some(Part { tokens: &run.pending, past: run.past, cache: &slot.cache })
        };
        let parts: Vec<Part> = chosen.iter().filter_map(part).collect();
        let by_rank = weights
            .team
            .run(|member| together::forward(&weights.shards[member.rank()], &weights.shared, member, &parts))?;
        for (place, at) in chosen.iter().enumerate() {
            let slot = &mut self.slots[*at];
            slot.logits.clear();
            for rank in &by_rank {
                let part: &Tensor = &rank[place];
                copy(part, &mut slot.logits)?;
            }
        }
        Ok(())
    }

    /// Turns the logits of each chosen slot into its next token.
    fn events(&mut self, chosen: &[usize]) -> Result<Vec<Event>> {
        let mut events = Vec::with_capacity(chosen.len());
        for at in chosen {
            let slot = &mut self.slots[*at];
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
        ensure_in_vocabulary(prompt, config.vocab_size)?;
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
        let chosen = self.choose();
        let events = self.pass(&chosen).and_then(|()| self.events(&chosen)).map_err(first_line);
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
        Some(self.weights.shared.config.cache_bytes())
    }
}
