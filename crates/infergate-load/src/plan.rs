//! What one level is to do.

pub mod dataset;
pub mod prompt;
pub mod ramp;
pub mod search;
pub mod shard;

use std::sync::Arc;

use infergate_core::load::{Arrivals, Phases, Stop, WindowPlan};

use crate::plan::dataset::Dataset;
use crate::plan::prompt::prompt;
use crate::plan::shard::Shard;
use crate::receipt::Scenario;

/// One level: who asks, for what, when, until when.
#[derive(Clone)]
pub struct LoadPlan {
    /// Index of the scenario in the receipt.
    pub scenario: u32,
    /// The scenario.
    pub shape: Scenario,
    /// When requests start, of all shards together.
    pub arrivals: Arrivals,
    /// Which requests are measured, of all shards together.
    pub stop: Stop,
    /// Requests that end before these start, of each user or of the schedule.
    pub warm_up_requests: u64,
    /// How long the users' first starts are spread over, or the rate rises; nanoseconds.
    pub ramp_ns: u64,
    /// Which part of the load is this client's.
    pub shard: Shard,
    /// Seed of an open loop's schedule.
    pub seed: u64,
    /// Where prompts come from.
    pub prompts: Prompts,
    /// No request starts once so much is kept, pieces of output and [`REQUEST_WEIGHT`] for each request: memory and the receipt
    /// are bounded.
    pub max_kept: u64,
}

/// What a receipt has room for, in pieces of output: it could not be read again beyond 128 MiB. It bounds the client's memory, too:
/// with answers of 2 tokens 100,000 requests took 100 MB, and the full room, 235,000 requests, 221 MB
/// (`load --input-tokens 16 --output-tokens 2 --users 64 --requests 1000000`).
pub const MAX_KEPT: u64 = 8_000_000;

/// What a request takes in a receipt, in pieces of output (about 14 bytes each).
pub const REQUEST_WEIGHT: u64 = 32;

/// Where prompts come from.
#[derive(Clone)]
pub enum Prompts {
    /// Common words.
    Words {
        /// Decides which.
        seed: u64,
        /// Words at the start that all prompts share.
        shared: u32,
    },
    /// Words, and what a window of load repeats.
    Repeating {
        /// Decides which words.
        seed: u64,
        /// Says which requests have which text.
        window: WindowPlan,
        /// The texts.
        texts: Vec<String>,
    },
    /// A file's, in turn.
    File {
        /// The file.
        dataset: Arc<Dataset>,
        /// So many requests in a row have the same prompt: one for each target.
        targets: u64,
    },
    /// The number of the request: for the audit, whose server logs by it.
    Numbers,
}

/// One request to be sent.
#[derive(Clone, Copy)]
pub struct Turn {
    /// Its number in the level, all shards together: prompts are made of it, so that no two shards send the same.
    pub request: u64,
    /// The number of its conversation's first request.
    pub conversation: u64,
    /// Which turn of it, from 0.
    pub turn: u32,
}

impl LoadPlan {
    /// This shard's part: its users or its part of the rate, which requests it measures, and how many come before them.
    pub fn own(&self) -> (Arrivals, Stop, u64) {
        let (shard, before) = (self.shard, self.warm_up_requests);
        let arrivals = shard.arrivals(self.arrivals);
        (arrivals, shard.stop(self.stop), shard.warm_up(arrivals, before))
    }

    /// What this client has to keep to.
    pub fn phases(&self) -> Phases {
        let (arrivals, stop, warm_up_requests) = self.own();
        let phases = Phases::new(arrivals, stop, warm_up_requests, self.ramp_ns);
        if self.shard.is_whole() { phases } else { phases.beside_others() }
    }

    /// What the progress of the level is a share of: its warm-up counts, what is sent behind the measured requests does not.
    pub fn progress_stop(&self) -> Stop {
        let (arrivals, stop, warm_up_requests) = self.own();
        let Stop::Requests { count } = stop else { return stop };
        let users = arrivals.users().map_or(1, u64::from);
        Stop::Requests { count: count + warm_up_requests * users }
    }

    /// The seed of the level's own prompts, of the run's: levels must not find each other's prompts in a cache.
    pub fn prompt_seed(&self, seed: u64) -> u64 {
        seed ^ self.seed.rotate_left(17)
    }

    /// The prompt of a request and the output tokens it asks for.
    pub fn ask(&self, turn: Turn) -> (String, u32) {
        let output_tokens = self.shape.output_tokens;
        let words = |seed: u64, shared| {
            prompt(self.shape.prompt_tokens(turn.turn), shared, seed, self.prompt_seed(seed), turn.conversation)
        };
        match &self.prompts {
            Prompts::Numbers => (turn.request.to_string(), output_tokens),
            Prompts::Words { seed, shared } => (words(*seed, *shared), output_tokens),
            Prompts::Repeating { seed, window, texts } => {
                let repeated = window.repeated(turn.request).and_then(|at| texts.get(at).cloned());
                (repeated.unwrap_or_else(|| words(*seed, 0)), output_tokens)
            }
            Prompts::File { dataset, targets } => {
                let entry = dataset.entry(turn.request / targets);
                (entry.prompt.clone(), entry.output_tokens.unwrap_or(output_tokens))
            }
        }
    }
}
