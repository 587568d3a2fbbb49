//! One level of a local load run as values: [`LevelPlan`].

use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::random::Random;
use super::{Arrivals, Stop};
use crate::engine::{TokenId, ensure_fits};
use crate::prompt::seeded_ids;

/// More requests at once than any engine here has room for.
pub const MOST_SLOTS: u32 = 4096;

/// The records of a level are one line of the worker protocol, and have to stay below its limit.
pub const MOST_ANSWER_BYTES: u64 = 15 << 20;
/// What one record takes in it, beside its token times, and what each of those takes.
const RECORD_BYTES: u64 = 640;
const TIME_BYTES: u64 = 18;

/// The size of one request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestShape {
    /// Prompt tokens, of the first turn of a conversation.
    pub prompt_tokens: usize,
    /// Output tokens, exactly.
    pub output_tokens: usize,
    /// How many of the prompt's first tokens are the same in every request of this scenario. 0: every prompt is its own, so
    /// that no prefix cache is measured by accident.
    #[serde(default)]
    pub shared_prefix_tokens: usize,
}

/// One level: which requests, when, and with how much room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelPlan {
    /// When requests start.
    pub arrivals: Arrivals,
    /// Which requests are measured.
    pub stop: Stop,
    /// Requests that end before these start: of each user, or of the schedule.
    #[serde(default)]
    pub warm_up_requests: u64,
    /// Requests that the engine has room for at once. Further ones wait, first come first served.
    pub slots: u32,
    /// Taken in turn, one a request. A record's `scenario` is an index into it.
    pub scenarios: Vec<RequestShape>,
    /// Requests of a conversation, whose prompts each begin with the whole of the one before. 0 or 1: each request is alone.
    #[serde(default)]
    pub turns: u32,
    /// Tokens that each further turn adds to the prompt.
    #[serde(default)]
    pub turn_tokens: usize,
    /// Of the prompts and of an open loop's schedule.
    pub seed: u64,
    /// How many requests are computed once more, alone, to compare the output.
    #[serde(default)]
    pub compared: u32,
}

impl LevelPlan {
    /// Refuses a plan that cannot be run on an engine with this context.
    ///
    /// # Errors
    /// No room, a request beyond the context, more records than an answer can hold.
    pub fn validate(&self, context_tokens: usize) -> Result<()> {
        ensure!(
            (1..=MOST_SLOTS).contains(&self.slots),
            "room for {} requests cannot be made; ask for 1 to {MOST_SLOTS}",
            self.slots
        );
        for shape in &self.scenarios {
            let prompt_tokens = self.prompt_tokens(shape, u64::from(self.turns.saturating_sub(1)));
            ensure_fits(prompt_tokens.saturating_add(shape.output_tokens), context_tokens)?;
        }
        if let (Stop::Requests { count }, Some(requests)) = (self.stop, self.requests()) {
            let longest = self.scenarios.iter().map(RequestShape::answer_bytes).max().unwrap_or(0);
            let room = MOST_ANSWER_BYTES / longest.max(1);
            ensure!(
                requests <= room,
                "{count} requests of this size are too many for one level; ask for at most {}",
                room.saturating_sub(requests - count)
            );
        }
        Ok(())
    }

    /// The index of the scenario that request number `request` belongs to.
    pub fn scenario(&self, request: u64) -> usize {
        let scenarios = self.scenarios.len().max(1) as u64;
        (request % scenarios) as usize
    }

    /// The shape of request number `request`; `None` in a plan without scenarios.
    pub fn shape(&self, request: u64) -> Option<RequestShape> {
        let shape = self.scenarios.get(self.scenario(request))?;
        let (_, turn) = self.turn(request);
        Some(RequestShape { prompt_tokens: self.prompt_tokens(shape, turn), ..*shape })
    }

    fn prompt_tokens(&self, shape: &RequestShape, turn: u64) -> usize {
        let more = usize::try_from(turn).unwrap_or(usize::MAX).saturating_mul(self.turn_tokens);
        shape.prompt_tokens.saturating_add(more)
    }

    /// The number of the first request of a request's conversation, and which turn of it the request is, from 0. Each user holds
    /// one conversation: the next turn comes as many requests later as there are users.
    fn turn(&self, request: u64) -> (u64, u64) {
        let users = self.arrivals.users().map_or(1, |users| u64::from(users.max(1)));
        let turn = request / users % u64::from(self.turns.max(1));
        (request - turn * users, turn)
    }

    /// The prompt of request number `request`: seeded ids below `vocab_tokens`, others for each conversation.
    pub fn prompt(&self, request: u64, vocab_tokens: usize) -> Vec<TokenId> {
        let Some(shape) = self.shape(request) else { return Vec::new() };
        let own_tokens = shape.prompt_tokens.saturating_sub(shape.shared_prefix_tokens);
        // Requests count from 0, scenarios from the other end.
        let of_scenario = Random::seed_of(self.seed, u64::MAX - self.scenario(request) as u64);
        let mut prompt = seeded_ids(shape.shared_prefix_tokens, of_scenario, vocab_tokens);
        let (conversation, _) = self.turn(request);
        prompt.extend(seeded_ids(own_tokens, Random::seed_of(self.seed, conversation), vocab_tokens));
        prompt
    }

    /// Requests of the whole level where all answers take as long: those before the measured ones, and about one of each user
    /// behind them. Of an open loop the fewest: how many start while others end is not known. `None` where the stop rule is a time.
    pub fn requests(&self) -> Option<u64> {
        let Stop::Requests { count } = self.stop else { return None };
        let around = match self.arrivals {
            Arrivals::Closed { users: 1 } => self.warm_up_requests,
            Arrivals::Closed { users } => u64::from(users).saturating_mul(self.warm_up_requests.saturating_add(1)),
            Arrivals::Open { .. } => self.warm_up_requests,
        };
        Some(count.saturating_add(around))
    }

    /// How long it takes by its stop rule and schedule; zero where only the engine's speed says.
    pub fn planned(&self) -> Duration {
        match (self.stop, self.arrivals) {
            (Stop::Duration { ns }, _) => Duration::from_nanos(ns),
            (Stop::Requests { count }, Arrivals::Open { requests_per_s, .. }) => {
                Duration::try_from_secs_f64(count as f64 / requests_per_s).unwrap_or(Duration::MAX)
            }
            (Stop::Requests { .. }, Arrivals::Closed { .. }) => Duration::ZERO,
        }
    }
}

impl RequestShape {
    /// The most that the record of such a request takes in an answer.
    pub fn answer_bytes(&self) -> u64 {
        RECORD_BYTES.saturating_add(TIME_BYTES.saturating_mul(self.output_tokens as u64))
    }
}
