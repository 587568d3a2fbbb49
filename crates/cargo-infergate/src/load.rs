//! Load: many requests at once against a server, by a client that measures its own accuracy.
//!
//! `client` sends one request, `runner` many of them, `stream` reads an answer, `summary` derives every number, `audit` drives
//! the client against a server whose times are known, `judge` says whether a run's numbers can be used. `tokenizer` counts
//! the tokens of answers, `token_counts` puts that beside the server's own count. `shard` divides a load
//! among machines, `merge` puts their receipts together. `window` is what a gate of two servers takes of a load.

pub mod answer_text;
pub mod audit;
pub mod body;
mod chunk;
pub mod client;
pub mod connection;
pub mod cost;
pub mod cpu;
pub mod crossing;
pub mod dataset;
pub mod dial;
pub mod endpoint;
pub mod events;
mod failures;
pub mod judge;
pub mod kernel_time;
pub mod live;
pub mod local;
pub mod merge;
pub mod plan;
pub mod prompt;
pub mod ramp;
pub mod repeats;
pub mod runner;
pub mod script_server;
pub mod search;
mod session;
pub mod shard;
pub mod slo;
pub mod stamped;
pub mod stream;
pub mod summary;
#[cfg(feature = "tls")]
mod tls;
pub mod token_counts;
pub mod tokenizer;
pub mod url;
pub mod values;
pub mod window;

use std::sync::Arc;

use anyhow::Result;

use crate::receipt::TargetRecord;
use endpoint::Outcome;
use live::Live;
use plan::LevelPlan;

/// What load is put on.
pub trait Target {
    /// What the receipt says of it: an entry for each of those that requests go to in turn.
    fn records(&self) -> Vec<TargetRecord>;

    /// How many tokens a request can have, where the target says it.
    fn context_tokens(&self) -> Option<u32> {
        None
    }

    /// Whether requests go over a network, by a client whose accuracy has to be known.
    fn has_client(&self) -> bool {
        true
    }

    /// Nanoseconds since the moment that times of its records count from; 0 where that is the first level's begin.
    fn now_ns(&self) -> u64 {
        0
    }

    /// Runs one level and gives what each of its requests did. Asked to end by `live`, it gives what there is.
    ///
    /// # Errors
    /// When the target itself is gone; requests that fail are in the record.
    fn run_level(&mut self, plan: &LevelPlan, live: &Arc<Live>) -> Result<Outcome>;
}
