//! The receipt of a load run: every request of every level, and what the client knows of its own accuracy.

use anyhow::{Result, ensure};
use infergate_core::engine::EngineInfo;
use infergate_core::load::{Arrivals, RequestRecord, Spacing, Stop, Window};
use infergate_core::receipt::Machine;
use infergate_core::receipt::limits::{MAX_NOTES, at_most, in_range, sound};
use infergate_core::stats::{percentile, quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shard::{ShardRecord, validate_shards};
use super::{Limit, MAX_TOKENS, MAX_TURNS, Price, Scenario};
use infergate_core::formats;
use infergate_core::receipt::Build;

/// Schema name of a [`LoadReceipt`].
pub const LOAD_SCHEMA: &str = "infergate.load/1";
/// Levels of a run.
const MAX_LEVELS: usize = 1_000;
/// Requests of a level.
pub const MAX_REQUESTS: usize = 1_000_000;
/// Pieces of output of one request.
const MAX_PIECES: usize = 10_000_000;
/// Targets of a run.
pub const MAX_TARGETS: usize = 100;
/// Users of a level.
pub const MAX_USERS: u32 = 100_000;

/// One load run: some scenarios, each at some numbers of users or at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReceipt {
    /// [`LOAD_SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339 in UTC.
    pub created: String,
    /// The run was cut short: what is here was measured, and it never passes.
    #[serde(default)]
    pub partial: bool,
    /// Why its numbers are not to be used, one sentence each.
    #[serde(default)]
    pub invalid: Vec<String>,
    /// What has to be known to read its numbers, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// infergate's own version.
    pub tool: String,
    /// Where the client ran.
    pub machine: Machine,
    /// What was asked: one, or several that requests went to in turn.
    pub targets: Vec<TargetRecord>,
    /// Seed of arrivals.
    pub seed: u64,
    /// Seed of prompts. It differs between runs, so that no run finds the prompts of another one in a server's cache.
    pub prompt_seed: u64,
    /// Limits that were asked for: of each request, for goodput, or of a percentile, for the most users that meet it.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// What users did.
    pub scenarios: Vec<Scenario>,
    /// Prompts of the dataset, which requests take in turn by their number; `null` where prompts were made up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset_prompts: Option<u64>,
    /// Which part of a load this is, where several clients put it on together; all parts, where this was put together from
    /// them; empty for a load that one client put on alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardRecord>,
    /// How accurate the client is, by a server that wrote down what it sent: one entry for each number of users or rate.
    #[serde(default)]
    pub audits: Vec<AuditRecord>,
    /// In the order in which they ran.
    pub levels: Vec<LevelRecord>,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TargetRecord {
    /// A server with an OpenAI-compatible API.
    Endpoint {
        /// Its name among several; empty where it is the only one.
        #[serde(default)]
        name: String,
        /// Where requests went, without credentials and without a query.
        url: String,
        /// `chat` or `completions`.
        api: String,
        /// The model's name at the server.
        model: String,
        /// `HTTP/1.1`.
        http: String,
        /// Extensions that were sent with each request: `ignore_eos`, `min_tokens`.
        #[serde(default)]
        extensions: Vec<String>,
        /// Words at the start of each prompt that all prompts of the run share.
        #[serde(default)]
        shared_prefix_tokens: u32,
        /// What its tokens cost; `null` where nobody said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        price: Option<Price>,
    },
    /// The engine of a bench target, in a process of its own.
    Local {
        /// Its name among several; empty where it is the only one.
        #[serde(default)]
        name: String,
        /// Engine and model.
        engine: Box<EngineInfo>,
        /// How the bench target was compiled.
        build: Box<Build>,
        /// Threads asked for.
        threads: usize,
        /// Time to load the model, nanoseconds.
        load_ns: u64,
    },
}

/// What a local engine did with many requests at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BatchRecord {
    /// Requests that it had room for at once.
    pub slots: u32,
    /// Most requests that one step worked on.
    pub largest_batch: u32,
    /// Whether a step computes several requests together. `false`: they take turns. `null`: the engine does not say.
    #[serde(default)]
    pub batches: Option<bool>,
    /// Memory for the keys and values of one request, bytes. `null`: the engine does not say.
    #[serde(default)]
    pub kv_bytes_per_request: Option<u64>,
    /// Requests whose output was computed once more alone, and was the same.
    pub compared: u32,
    /// Why the level ended before its stop rule said so; `null` where it did not.
    #[serde(default)]
    pub cut_short: Option<String>,
}

/// One number of users, or one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelRecord {
    /// Index of its scenario.
    pub scenario: u32,
    /// When requests started, by this client.
    pub arrivals: Arrivals,
    /// Of a shard: the arrivals of all shards together. An open loop's requests are those of that schedule at this shard's
    /// places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Arrivals>,
    /// Which requests were to be measured.
    pub stop: Stop,
    /// Requests that ended before these started: of each user in a closed loop, of the schedule in an open one.
    pub warm_up_requests: u64,
    /// How long the users' first starts were spread over, or the rate rose, before the steady window; nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ramp_ns: u64,
    /// The time in which the load was what was asked for, until all measured requests had ended; of several shards, what they
    /// have in common, or no time at all. `null` where it never was, and in receipts of before: then the requests say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Window>,
    /// When it began, nanoseconds after the run did.
    pub began_ns: u64,
    /// How long it took.
    pub wall_ns: u64,
    /// Processor time of the client's thread meanwhile, of several shards the busiest one's; `null` where the system does not
    /// say.
    #[serde(default)]
    pub client_cpu_ns: Option<u64>,
    /// What the system says of when it received what the client read, of several shards the worst; `null` where it says
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<ReceiveRecord>,
    /// Requests that were sent: completed, failed and cancelled ones together.
    pub issued: u64,
    /// Each of them, in the order of their starts.
    pub requests: Vec<RequestRecord>,
    /// What a local engine did with them; `null` for a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchRecord>,
}

/// The client's own delay in a real run, by the system's time of receipt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveRecord {
    /// Reads that the system had a time for.
    pub reads: u64,
    /// From the system's receipt of what a read gave to the client's stamp of it.
    pub delay_ns: ErrorNs,
}

/// What the client made of a server whose token times are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// Whose it is, in a receipt that was put together from shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<u32>,
    /// The load it was driven with.
    pub arrivals: Arrivals,
    /// Scripted time to the first token.
    pub ttft_ns: u64,
    /// Scripted gap between tokens.
    pub itl_ns: u64,
    /// Scripted tokens of an answer.
    pub output_tokens: u32,
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
    #[serde(default)]
    pub client_cpu_share: Option<f64>,
}

/// An error over all tokens, nanoseconds. `null` where there are too few.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        let at = |p: f64| percentile(values, p).and_then(|percentile| percentile.value);
        Self { p50: at(0.5), p99: at(0.99), max: quantile(values, 1.0) }
    }

    /// Those that are known.
    fn all(&self) -> impl Iterator<Item = f64> {
        [self.p50, self.p99, self.max].into_iter().flatten()
    }
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

formats!(LoadReceipt: LOAD_SCHEMA);

impl LoadReceipt {
    /// Refuses a receipt that no run could have written.
    pub fn validate(&self) -> Result<()> {
        at_most(self.invalid.len().max(self.notes.len()), MAX_NOTES, "sentences of a load run")?;
        at_most(self.levels.len(), MAX_LEVELS, "levels")?;
        at_most(self.audits.len(), MAX_LEVELS * self.shards.len().max(1), "self-audits")?;
        at_most(self.scenarios.len(), MAX_LEVELS, "scenarios")?;
        at_most(self.targets.len(), MAX_TARGETS, "targets")?;
        ensure!(!self.targets.is_empty(), "there is no target in it; measure again");
        self.targets.iter().filter_map(TargetRecord::price).try_for_each(|price| price.validate())?;
        ensure!(self.partial || !self.levels.is_empty(), "there are no levels in it; measure again");
        at_most(self.limits.len(), MAX_NOTES, "limits")?;
        validate_shards(&self.shards)?;
        ensure!(self.dataset_prompts.is_none_or(|prompts| prompts > 0), "a dataset without prompts; measure again");
        in_range(self.dataset_prompts, "prompts of the dataset")?;
        in_range(self.limits.iter().map(|limit| limit.limit_ns), "a limit")?;
        let percentiles = self.limits.iter().filter_map(|limit| limit.percentile);
        ensure!(
            percentiles.clone().all(|p| p > 0.0 && p < 1.0),
            "a limit's percentile is not between 0 and 1; the file was edited"
        );
        for scenario in &self.scenarios {
            validate_scenario(scenario)?;
        }
        for audit in &self.audits {
            validate_arrivals(&audit.arrivals)?;
            in_range([audit.ttft_ns, audit.itl_ns, audit.requests, audit.wrong_requests, audit.tokens], "the audit")?;
            sound(audit.client_cpu_share, "the audit's share of a core")?;
            let errors = audit.stamp_error_ns.all().chain(audit.gap_error_ns.all());
            sound(errors.map(f64::abs), "the audit's errors")?;
        }
        for (index, level) in self.levels.iter().enumerate() {
            let known = usize::try_from(level.scenario).is_ok_and(|scenario| scenario < self.scenarios.len());
            ensure!(known, "level {index}: its scenario is not in the file; measure again");
            level.validate(index)?;
            let targets = level.requests.iter().map(|request| usize::try_from(request.target).unwrap_or(usize::MAX));
            let known = targets.max().is_none_or(|last| last < self.targets.len());
            ensure!(known, "level {index}: a request's target is not in the file; measure again");
        }
        Ok(())
    }
}

impl TargetRecord {
    /// Its name among several; empty where it is the only one.
    pub fn name(&self) -> &str {
        let (Self::Endpoint { name, .. } | Self::Local { name, .. }) = self;
        name
    }

    /// What its tokens cost, where somebody said so.
    pub fn price(&self) -> Option<Price> {
        if let Self::Endpoint { price, .. } = self { *price } else { None }
    }
}

impl LevelRecord {
    fn validate(&self, index: usize) -> Result<()> {
        validate_arrivals(&self.arrivals)?;
        self.whole.iter().try_for_each(validate_arrivals)?;
        let ends = self.steady.into_iter().flat_map(|window| [window.from_ns, window.to_ns]);
        in_range(ends.chain([self.ramp_ns]), format_args!("level {index}"))?;
        at_most(self.requests.len(), MAX_REQUESTS, format_args!("requests of level {index}"))?;
        let stop = match self.stop {
            Stop::Requests { count } => count,
            Stop::Duration { ns } => ns,
        };
        let numbers = [self.warm_up_requests, self.began_ns, self.wall_ns, self.issued, stop];
        in_range(
            numbers.into_iter().chain(self.client_cpu_ns).chain(self.received.map(|received| received.reads)),
            format_args!("level {index}"),
        )?;
        let delays = self.received.iter().flat_map(|received| received.delay_ns.all());
        sound(delays, format_args!("level {index}: the client's delay"))?;
        ensure!(
            self.issued == self.requests.len() as u64,
            "level {index}: {} requests were issued and {} are in the file; measure again",
            self.issued,
            self.requests.len()
        );
        for request in self.requests.iter().filter(|request| request.measured) {
            let within = |window: Window| window.from_ns <= request.scheduled_ns && request.ended_ns <= window.to_ns;
            ensure!(
                self.steady.is_some_and(within),
                "level {index}, request {}: it is measured and did not run at full load; the file was edited",
                request.request
            );
        }
        self.requests.iter().try_for_each(|request| validate_request(index, request))
    }
}

pub(super) fn validate_scenario(scenario: &Scenario) -> Result<()> {
    let Scenario { name, input_tokens, output_tokens, turns, turn_tokens } = scenario;
    let tokens = [*input_tokens, *output_tokens, *turn_tokens];
    ensure!(
        tokens.iter().all(|tokens| *tokens <= MAX_TOKENS) && (1..=MAX_TURNS).contains(turns),
        "scenario {name}: it has more tokens or turns than any run; measure again"
    );
    Ok(())
}

pub(super) fn validate_arrivals(arrivals: &Arrivals) -> Result<()> {
    match *arrivals {
        Arrivals::Closed { users } => {
            ensure!((1..=MAX_USERS).contains(&users), "{users} users are none or more than any run has; measure again");
        }
        Arrivals::Open { requests_per_s, spacing } => {
            let shape = if let Spacing::Gamma { shape } = spacing { shape } else { 1.0 };
            let positive = |number: f64| number.is_finite() && number > 0.0;
            ensure!(positive(requests_per_s) && positive(shape), "a rate or a shape is not above 0; measure again");
        }
    }
    Ok(())
}

fn validate_request(level: usize, record: &RequestRecord) -> Result<()> {
    let name = format!("level {level}, request {}", record.request);
    at_most(record.chunk_ns.len().max(record.chunk_tokens.len()), MAX_PIECES, format_args!("pieces of {name}"))?;
    let counts =
        [record.input_tokens, record.output_tokens, record.unsent_tokens, record.text_tokens, record.text_bytes];
    in_range([record.ended_ns, record.request].into_iter().chain(counts.into_iter().flatten()), &name)?;
    let begin = [Some(record.scheduled_ns), Some(record.sent_ns), record.connected_ns, record.first_byte_ns];
    let pieces = record.chunk_ns.iter().copied();
    let times: Vec<u64> = begin.into_iter().flatten().chain(pieces).chain([record.ended_ns]).collect();
    ensure!(times.is_sorted(), "{name}: its times decrease; measure again");
    ensure!(
        record.chunk_tokens.is_empty() || record.chunk_tokens.len() == record.chunk_ns.len(),
        "{name}: {} counts of tokens for {} pieces; measure again",
        record.chunk_tokens.len(),
        record.chunk_ns.len()
    );
    ensure!(
        record.failure.is_some() || !record.chunk_ns.is_empty(),
        "{name}: it completed and has no output; measure again"
    );
    Ok(())
}
