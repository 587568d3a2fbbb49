//! Several requests at once: [`Scheduler`], and [`RoundRobin`], which makes one of any engine that can fork.

use std::collections::VecDeque;

use anyhow::{Result, bail, ensure};

use super::{Engine, TokenId};

/// A request's number, given by [`Scheduler::submit`] and never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// One token of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Whose.
    pub request: RequestId,
    /// The token.
    pub token: TokenId,
    /// Which of the request's output tokens it is, from 0.
    pub index: usize,
    /// For how many nanoseconds it had been on the host when [`Scheduler::step`] returned; 0 where that step computed it.
    /// Its time is the time of the return less this.
    pub age_ns: u64,
    /// It is the request's last: its slot is free.
    pub finished: bool,
}

/// An engine that serves several requests. Decoding is greedy and ignores end-of-sequence, as for [`Engine`]: each request
/// gets the tokens it would get alone.
///
/// Nothing is computed but in [`step`](Scheduler::step), unless the engine says that it is
/// [streaming](super::Pacing::Streaming). Tested by [`check_contract`](super::check_contract).
pub trait Scheduler {
    /// How many requests can be in flight at once.
    fn capacity(&self) -> usize;

    /// How many are.
    fn in_flight(&self) -> usize;

    /// Takes a request for exactly `max_tokens` output tokens.
    ///
    /// # Errors
    /// When no slot is free, the prompt is empty, or prompt and output together exceed the context. What is in flight goes on.
    fn submit(&mut self, prompt: &[TokenId], max_tokens: usize) -> Result<RequestId>;

    /// Does the least work that gives tokens, and gives them; at most one a request where the engine is stepwise. Without
    /// requests in flight it gives none and returns at once. One that is [streaming](super::Pacing::Streaming) may also give
    /// none after it waited for a moment, so that further requests are taken in meanwhile.
    ///
    /// # Errors
    /// When the engine fails. Then nothing is in flight any more.
    fn step(&mut self) -> Result<Vec<Event>>;

    /// Ends a request and frees its slot. `false`: it is not in flight.
    fn cancel(&mut self, request: RequestId) -> bool;

    /// Whether a step computes several requests together, so that a batch costs less than its requests one by one. `None`:
    /// not known.
    fn batches(&self) -> Option<bool> {
        None
    }

    /// Memory that is kept for the keys and values of one request, bytes. `None`: not known.
    fn kv_bytes_per_request(&self) -> Option<u64> {
        None
    }
}

/// Sequences of one engine that take turns, a token each. It shares the machine between requests and makes none of them
/// cheaper.
pub struct RoundRobin {
    context_tokens: usize,
    free: Vec<Box<dyn Engine + Send>>,
    /// In the order of their turns.
    running: VecDeque<Running>,
    submitted: u64,
}

struct Running {
    request: RequestId,
    engine: Box<dyn Engine + Send>,
    /// Empty once it was read.
    prompt: Vec<TokenId>,
    given: usize,
    max_tokens: usize,
}

impl RoundRobin {
    /// Room for `requests` requests, which take turns on as many [forks](Engine::fork) of `engine`.
    ///
    /// # Errors
    /// For zero requests; an engine that cannot fork.
    pub fn of<E: Engine + ?Sized>(engine: &E, requests: usize) -> Result<Self> {
        ensure!(requests > 0, "a scheduler for zero requests serves nobody; ask for room for at least one");
        let free = (0..requests).map(|_| engine.fork()).collect::<Result<_>>()?;
        Ok(Self { context_tokens: engine.info().context_tokens, free, running: VecDeque::new(), submitted: 0 })
    }
}

impl Running {
    fn step(&mut self) -> Result<Event> {
        let token = match self.prompt.is_empty() {
            false => self.engine.start(&std::mem::take(&mut self.prompt))?,
            true => self.engine.next()?,
        };
        self.given += 1;
        let (request, index) = (self.request, self.given - 1);
        Ok(Event { request, token, index, age_ns: 0, finished: self.given == self.max_tokens })
    }
}

impl Scheduler for RoundRobin {
    fn capacity(&self) -> usize {
        self.free.len() + self.running.len()
    }

    fn in_flight(&self) -> usize {
        self.running.len()
    }

    fn submit(&mut self, prompt: &[TokenId], max_tokens: usize) -> Result<RequestId> {
        ensure_request_fits(prompt, max_tokens, self.context_tokens)?;
        let Some(engine) = self.free.pop() else { bail!(no_free_slot(self.capacity())) };
        let request = RequestId(self.submitted);
        self.submitted += 1;
        self.running.push_back(Running { request, engine, prompt: prompt.to_vec(), given: 0, max_tokens });
        Ok(request)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        let Some(mut running) = self.running.pop_front() else { return Ok(Vec::new()) };
        let event = running.step();
        match &event {
            Ok(event) if !event.finished => self.running.push_back(running),
            Ok(_) => self.free.push(running.engine),
            Err(_) => {
                self.free.push(running.engine);
                self.free.extend(self.running.drain(..).map(|other| other.engine));
            }
        }
        Ok(vec![event?])
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        let Some(at) = self.running.iter().position(|running| running.request == request) else { return false };
        self.free.extend(self.running.remove(at).map(|running| running.engine));
        true
    }

    fn batches(&self) -> Option<bool> {
        Some(false)
    }
}

/// Why [`Scheduler::submit`] refuses one request more, in the words every scheduler should use.
pub fn no_free_slot(capacity: usize) -> String {
    format!("all {capacity} slots are taken; wait for a request to end, or ask for room for more")
}

/// Refuses a request that no [`Scheduler`] can serve, in the words every one should use.
///
/// # Errors
/// Without a prompt or without output; prompt and output beyond `context_tokens`.
pub fn ensure_request_fits(prompt: &[TokenId], max_tokens: usize, context_tokens: usize) -> Result<()> {
    ensure!(!prompt.is_empty(), "the prompt has no tokens; give at least one");
    ensure!(max_tokens > 0, "zero output tokens were requested; give at least one");
    super::ensure_fits(prompt.len().saturating_add(max_tokens), context_tokens)
}
