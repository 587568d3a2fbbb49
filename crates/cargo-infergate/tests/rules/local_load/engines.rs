//! Engines and loads whose times are known.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, Event, RequestId, Scheduler, TokenId};
use infergate::load::Ask;
use infergate_core::load::{Arrivals, LevelPlan, RequestShape, Stop};

use crate::fake::{FakeEngine, FakeScript, VirtualClock};

pub const MS: u64 = 1_000_000;

/// 1 ms for each prompt token, the first token included; 20 ms for each further one.
pub fn script() -> FakeScript {
    FakeScript { prefill_ns_per_token: MS, step_ns: 20 * MS, first_sample_ns: 0, ..FakeScript::default() }
}

pub static NEVER: AtomicBool = AtomicBool::new(false);

/// Four prompt tokens and two output tokens: 24 ms where nobody else is served.
pub fn ask(request: u64) -> Option<Ask> {
    let first = TokenId::try_from(request).expect("few requests");
    Some(Ask { prompt: vec![first, 1, 2, 3], output_tokens: 2, scenario: 0 })
}

pub fn plan(arrivals: Arrivals, stop: Stop, slots: u32) -> LevelPlan {
    let shape = RequestShape { prompt_tokens: 4, output_tokens: 2, shared_prefix_tokens: 0 };
    LevelPlan {
        arrivals,
        stop,
        warm_up_requests: 0,
        slots,
        scenarios: vec![shape],
        turns: 1,
        turn_tokens: 0,
        seed: 1,
        compared: 3,
    }
}

/// A step computes prompts and tokens of all requests together, and takes 10 ms, whatever it computes.
pub struct Batch {
    clock: VirtualClock,
    fake: FakeEngine,
    slots: usize,
    running: Vec<Lane>,
    submitted: u64,
    /// How long a step with so many requests takes.
    pub step_ns: fn(usize) -> u64,
    /// Says something else where requests are computed together.
    pub changes: bool,
    /// How many requests each step worked on.
    pub steps: Vec<usize>,
}

struct Lane {
    request: RequestId,
    engine: Box<dyn Engine + Send>,
    prompt: Vec<TokenId>,
    given: usize,
    output_tokens: usize,
}

impl Batch {
    pub fn new(clock: VirtualClock, slots: usize) -> Self {
        // The lanes' own clock is nobody's.
        let fake = FakeEngine::new(script(), VirtualClock::default());
        Self {
            clock,
            fake,
            slots,
            running: Vec::new(),
            submitted: 0,
            step_ns: |_| 10 * MS,
            changes: false,
            steps: Vec::new(),
        }
    }
}

impl Scheduler for Batch {
    fn capacity(&self) -> usize {
        self.slots
    }

    fn in_flight(&self) -> usize {
        self.running.len()
    }

    fn submit(&mut self, prompt: &[TokenId], output_tokens: usize) -> Result<RequestId> {
        let request = RequestId(self.submitted);
        self.submitted += 1;
        self.running.push(Lane {
            request,
            engine: self.fake.fork()?,
            prompt: prompt.to_vec(),
            given: 0,
            output_tokens,
        });
        Ok(request)
    }

    fn step(&mut self) -> Result<Vec<Event>> {
        self.clock.advance_ns((self.step_ns)(self.running.len()));
        self.steps.push(self.running.len());
        let salt = TokenId::from(self.changes && self.running.len() > 1);
        let mut events = Vec::new();
        for lane in &mut self.running {
            let token = if lane.given == 0 { lane.engine.start(&lane.prompt)? } else { lane.engine.next()? } + salt;
            let index = lane.given;
            lane.given += 1;
            events.push(Event {
                request: lane.request,
                token,
                index,
                age_ns: 0,
                finished: lane.given == lane.output_tokens,
            });
        }
        self.running.retain(|lane| lane.given < lane.output_tokens);
        Ok(events)
    }

    fn cancel(&mut self, request: RequestId) -> bool {
        let before = self.running.len();
        self.running.retain(|lane| lane.request != request);
        self.running.len() < before
    }
}

/// An engine whose scheduler is a [`Batch`].
pub struct BatchEngine {
    pub fake: FakeEngine,
    pub clock: VirtualClock,
    pub changes: bool,
    /// What it computes in, and by how much its token's logit, 8, is above that of the token so many places behind.
    pub margin: Option<(&'static str, f32, TokenId)>,
}

impl Engine for BatchEngine {
    fn info(&self) -> EngineInfo {
        let info = self.fake.info();
        let computes_in = self.margin.map(|(dtype, ..)| dtype.to_owned());
        EngineInfo { computes_in, ..info }
    }

    fn logits(&self, out: &mut Vec<f32>) -> bool {
        let Some(((_, margin, behind), step)) = self.margin.zip(self.fake.last_step()) else { return false };
        // Padding is no logit that anything is large beside.
        *out = vec![-1e9; self.fake.info().vocab_tokens];
        out[step.token as usize] = 8.0;
        out[(step.token + behind) as usize] = 8.0 - margin;
        true
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.fake.start(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.fake.next()
    }

    fn scheduler(&self, requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        let mut batch = Batch::new(self.clock.clone(), requests);
        batch.changes = self.changes;
        Ok(Box::new(batch))
    }
}
