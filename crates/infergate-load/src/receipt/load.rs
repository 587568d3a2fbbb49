//! The receipt of a load run: every request of every level, and what the client knows of its own accuracy.

use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use infergate_core::engine::{Cost, EngineInfo};
pub use infergate_core::load::BatchRecord;
use infergate_core::load::{Arrivals, RequestRecord, Stop, Window};
use infergate_core::stats::{percentile, quantile};
use serde::{Deserialize, Serialize};

use super::{Limit, Scenario};
use infergate_core::receipt::{Build, Format, Machine, Probes};

/// Schema name of a [`LoadReceipt`].
pub const LOAD_SCHEMA: &str = "infergate.load/1";
/// Targets of a run.
pub const MAX_TARGETS: usize = 100;
/// Users of a level.
pub const MAX_USERS: u32 = 100_000;
/// Clients of one load.
pub const MAX_SHARDS: u32 = 1_000;
/// The highest price: beyond it a sum of prices means nothing.
const MAX_PRICE: f64 = 1e12;

/// One load run: some scenarios, each at some numbers of users or at one rate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadReceipt {
    /// [`LOAD_SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339 in UTC.
    pub created: String,
    /// The run was cut short: what is here was measured, and it never passes.
    pub partial: bool,
    /// Why its numbers are not to be used, one sentence each.
    pub invalid: Vec<String>,
    /// What has to be known to read its numbers, one sentence each.
    pub notes: Vec<String>,
    /// infergate's own version.
    pub tool: String,
    /// Where the client ran.
    pub machine: Machine,
    /// The most that the hardware gave, of a probe after each level; `null` for servers, and an engine that does not say its cost.
    pub probes: Option<Probes>,
    /// What was asked: one, or several that requests went to in turn.
    pub targets: Vec<TargetRecord>,
    /// Seed of arrivals.
    pub seed: u64,
    /// Seed of prompts. It differs between runs, so that no run finds the prompts of another one in a server's cache.
    pub prompt_seed: u64,
    /// Limits that were asked for: of each request, for goodput, or of a percentile, for the most users that meet it.
    pub limits: Vec<Limit>,
    /// What users did.
    pub scenarios: Vec<Scenario>,
    /// Prompts of the dataset, which requests take in turn by their number / targets; `null` where prompts were made up.
    pub dataset_prompts: Option<u64>,
    /// Which part of a load this is, where several clients put it on together; all parts, where this was put together from
    /// them; empty for a load that one client put on alone.
    #[serde(default)]
    pub shards: Vec<ShardRecord>,
    /// How accurate the client is, by a server that wrote down what it sent: one entry for each number of users or rate.
    pub audits: Vec<AuditRecord>,
    /// In the order in which they ran.
    pub levels: Vec<LevelRecord>,
}

/// One of the clients that put a load on together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Which one, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
    /// The name of the run, which its shards have in common and no other run has: a hash of everything that was asked for.
    pub run: String,
    /// The moment that times of its receipt count from, nanoseconds since 1970 in UTC, by its machine's clock.
    pub clock_unix_ns: u64,
}

/// Prices of a million tokens, in whatever currency: all prices of a run in the same one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Of the prompt.
    pub input_per_million: f64,
    /// Of the answer.
    pub output_per_million: f64,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TargetRecord {
    /// A server.
    Endpoint {
        /// Its name among several; empty where it is the only one.
        #[serde(default)]
        name: String,
        /// Where requests went, without credentials and without a query.
        url: String,
        /// Its API: `chat`, `completions`, `responses` or `messages`.
        api: String,
        /// The model's name at the server.
        model: String,
        /// Extensions that were sent with each request: `ignore_eos`, `min_tokens`.
        #[serde(default)]
        extensions: Vec<String>,
        /// Words at the start of each prompt that all prompts of the run share.
        #[serde(default)]
        shared_prefix_tokens: u32,
        /// What its tokens cost; `null` where nobody said.
        price: Option<Price>,
    },
    /// The engine of a bench target, in a process of its own.
    Local {
        /// Engine and model.
        engine: Box<EngineInfo>,
        /// How the bench target was compiled.
        build: Box<Build>,
        /// Threads asked for.
        threads: usize,
        /// Time to load the model, nanoseconds.
        load_ns: u64,
        /// What a step costs; `null` where the engine does not say.
        cost: Option<Cost>,
    },
}

/// One number of users, or one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelRecord {
    /// Index of its scenario.
    pub scenario: u32,
    /// When requests started, by this client.
    pub arrivals: Arrivals,
    /// Of a shard: the arrivals of all shards together. An open loop's requests are those of that schedule at this shard's
    /// places.
    pub whole: Option<Arrivals>,
    /// Which requests were to be measured.
    pub stop: Stop,
    /// Requests that ended before these started: of each user in a closed loop, of the schedule in an open one.
    pub warm_up_requests: u64,
    /// How long the users' first starts were spread over, or the rate rose, before the steady window; nanoseconds.
    #[serde(default)]
    pub ramp_ns: u64,
    /// The time in which the load was what was asked for, until all measured requests had ended; of several shards, what they
    /// have in common. `null` where it never was.
    pub steady: Option<Window>,
    /// When it began, nanoseconds after the run did.
    pub began_ns: u64,
    /// How long it took.
    pub wall_ns: u64,
    /// Processor time of the client's thread meanwhile, of several shards the busiest one's; `null` where the system does not
    /// say.
    pub client_cpu_ns: Option<u64>,
    /// What the system says of when it received what the client read, of several shards the worst; `null` where it says
    /// nothing.
    pub received: Option<ReceiveRecord>,
    /// Each request that was sent, completed, failed and cancelled ones together, in the order of their starts.
    pub requests: Vec<RequestRecord>,
    /// What a local engine did with them; `null` for a server.
    pub batch: Option<BatchRecord>,
}

/// The client's own delay in a real run, by the system's time of receipt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReceiveRecord {
    /// Reads that the system had a time for.
    pub reads: u64,
    /// From the system's receipt of what a read gave to the client's stamp of it.
    pub delay_ns: ErrorNs,
}

/// What the client made of a server whose token times are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Whose it is, in a receipt that was put together from shards.
    pub shard: Option<u32>,
    /// The load it was driven with.
    pub arrivals: Arrivals,
    /// Requests.
    pub requests: u64,
    /// Of these, the ones that failed, or whose tokens are not those the server wrote.
    pub wrong_requests: u64,
    /// Tokens compared.
    pub tokens: u64,
    /// The client's stamp of a token less the moment before the server wrote it.
    pub stamp_error_ns: ErrorNs,
    /// The client's gap between two tokens less the server's, without its sign.
    pub gap_error_ns: ErrorNs,
    /// Processor time of the client's thread per time; `null` where the system does not say.
    pub client_cpu_share: Option<f64>,
}

/// An error over all tokens, nanoseconds. `null` where there are too few.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ErrorNs {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl ErrorNs {
    /// Of these; a percentile that takes more of them is `None`.
    pub fn of(values: &[f64]) -> Self {
        Self { p50: percentile(values, 0.5), p99: percentile(values, 0.99), max: quantile(values, 1.0) }
    }
}

impl Format for LoadReceipt {
    const SCHEMA: &'static str = LOAD_SCHEMA;

    fn check(&self) -> Result<()> {
        ensure!(!self.targets.is_empty(), "there is no target in it; measure again");
        ensure!(self.partial || !self.levels.is_empty(), "there are no levels in it; measure again");
        for (index, level) in self.levels.iter().enumerate() {
            let is_known = (level.scenario as usize) < self.scenarios.len()
                && level.requests.iter().all(|request| (request.target as usize) < self.targets.len());
            ensure!(is_known, "level {index}: its scenario or a request's target is not in the file; measure again");
        }
        Ok(())
    }
}

impl LoadReceipt {
    /// How a level is named: `chatbot, 8 users`.
    pub fn level_name(&self, level: &LevelRecord) -> String {
        format!("{}, {}", self.scenarios[level.scenario as usize].name, level.arrivals.name())
    }
}

impl LevelRecord {
    /// Processor time of the client's thread per time; `None` where the system does not say.
    pub fn client_cpu_share(&self) -> Option<f64> {
        let share = self.client_cpu_ns? as f64 / self.wall_ns as f64;
        share.is_finite().then_some(share)
    }
}

impl ShardRecord {
    /// How it is named: `shard 1 of 4`.
    pub fn name(&self) -> String {
        format!("shard {} of {}", u64::from(self.index) + 1, self.count)
    }
}

impl TargetRecord {
    /// Its name among several; empty where it is the only one, as an engine always is.
    pub fn name(&self) -> &str {
        if let Self::Endpoint { name, .. } = self { name } else { "" }
    }

    /// How many tokens a request can have, where the target says it.
    pub fn context_tokens(&self) -> Option<u32> {
        if let Self::Local { engine, .. } = self { u32::try_from(engine.context_tokens).ok() } else { None }
    }

    /// What its tokens cost, where somebody said so.
    pub fn price(&self) -> Option<Price> {
        if let Self::Endpoint { price, .. } = self { *price } else { None }
    }
}

impl FromStr for Price {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let write = "write two numbers, of a million tokens in and out, for example 0.15,0.60";
        let (input, output) = text.split_once(',').context(write)?;
        let number = |text: &str| text.trim().parse::<f64>().ok().context(write);
        let price = Self { input_per_million: number(input)?, output_per_million: number(output)? };
        ensure!(
            [price.input_per_million, price.output_per_million].iter().all(|price| (0.0..=MAX_PRICE).contains(price)),
            "a price is no number from 0 to {MAX_PRICE:e}; give the price of a million tokens"
        );
        Ok(price)
    }
}
