//! From flags and `infergate.toml` to the levels of a run.

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use infergate_core::load::{Arrivals, Stop};
use infergate_core::machine;
use infergate_core::sha256;
use infergate_core::stats::samples_needed;
use serde::Serialize;

use super::flags::{self, Load};
use crate::config::Config;
use infergate_load::plan::dataset::Dataset;
use infergate_load::plan::shard::{Shard, note};
use infergate_load::plan::{LoadPlan, Prompts};
use infergate_receipts::{LOAD_SCHEMA, Limit, LoadReceipt, Scenario, ShardRecord, TargetRecord, timestamp};

/// Measured requests of each user in a level, if no flag gives a number.
const REQUESTS_PER_USER: u64 = 8;
/// The fewest measured requests of a level, if no flag gives a number.
const LEAST_REQUESTS: u64 = 40;
/// Requests that an interval of a percentile takes / requests that the percentile itself takes.
const DEPENDENT: u64 = 4;

/// Settings of a run that are not in its receipt. Those that all shards share are serialised: their hash names the run.
#[derive(Serialize)]
pub struct Settings {
    /// The levels of each scenario; none if users are searched for.
    pub loads: Vec<Arrivals>,
    /// The most users of a search; `None`: no search.
    pub search_up_to: Option<u32>,
    /// Which part of the load is this client's.
    #[serde(skip)]
    pub shard: Shard,
    /// When all shards begin, nanoseconds since 1970 in UTC; `None`: at once.
    pub start_unix_ns: Option<u64>,
    #[serde(skip)]
    prompts: Prompts,
    stop: Option<Stop>,
    warm_up_requests: u64,
    ramp_ns: u64,
}

impl Settings {
    /// The settings of a run on `targets`, and its receipt before the first level.
    pub fn from(options: &Load, config: &Config, targets: Vec<TargetRecord>) -> Result<(Self, LoadReceipt)> {
        let seed = config.measured.seed;
        let Load { levels, prompts: prompt_flags, .. } = options;
        // Without a common start there are no shards.
        let (shard, start_unix_ns) = (options.shard.unwrap_or_default(), options.start_at);
        // All shards have the same prompts, and each sends its own of them.
        let prompt_seed =
            if prompt_flags.same_prompts { seed } else { seed ^ start_unix_ns.map_or_else(unix_ns, Ok)? };
        let (mut scenarios, mut notes) = (scenarios(prompt_flags, &config.tables.scenarios)?, Vec::new());
        if let Some(context_tokens) = prompt_flags.context.or(targets[0].context_tokens()) {
            let context = if prompt_flags.context.is_some() { "--context" } else { "the model's context" };
            for scenario in &mut scenarios {
                let (scaled, note) = scenario.scaled(context, context_tokens);
                *scenario = scaled;
                notes.extend(note);
            }
        }
        let dataset = prompt_flags.dataset.as_deref().map(Dataset::read).transpose()?.map(Arc::new);
        let prompts = match &dataset {
            Some(dataset) => Prompts::File { dataset: dataset.clone(), targets: targets.len() as u64 },
            None => Prompts::Words { seed: prompt_seed, shared: prompt_flags.shared_prefix },
        };
        let duration = levels.duration.map(|time| Stop::Duration { ns: time.as_nanos() as u64 });
        let requests = levels.requests.map(|count| Stop::Requests { count });
        let search_up_to = (!levels.until_slo.is_empty()).then_some(levels.max_users);
        let closed = levels.users.iter().map(|users| Arrivals::Closed { users: *users });
        let open = levels.rate.iter().map(|rate| Arrivals::Open { requests_per_s: *rate, spacing: levels.arrivals });
        let loads: Vec<Arrivals> = match search_up_to {
            Some(_) => Vec::new(),
            None if levels.rate.is_empty() => closed.collect(),
            None => open.collect(),
        };
        for users in loads.iter().filter_map(Arrivals::users) {
            ensure!(
                users >= shard.count,
                "--users {users}: fewer than the {} shards, so that some would do nothing; leave it out, or take fewer shards",
                shard.count
            );
        }
        let settings = Self {
            loads,
            search_up_to,
            shard,
            start_unix_ns,
            prompts,
            stop: duration.or(requests),
            warm_up_requests: levels.warm_up.unwrap_or(targets.len() as u64),
            ramp_ns: levels.ramp.map_or(0, |time| time.as_nanos() as u64),
        };
        let mut receipt = LoadReceipt {
            schema: LOAD_SCHEMA.into(),
            created: timestamp(),
            partial: true,
            notes,
            tool: env!("CARGO_PKG_VERSION").into(),
            machine: machine::detect(),
            targets,
            seed,
            prompt_seed,
            limits: [&levels.slo[..], &levels.until_slo].concat(),
            scenarios,
            dataset_prompts: dataset.as_ref().map(|dataset| dataset.entries.len() as u64),
            ..LoadReceipt::default()
        };
        if let Some(record) = settings.shard_record(&receipt, dataset.as_deref())? {
            receipt.notes.insert(0, note(&record));
            receipt.shards.push(record);
        }
        Ok((settings, receipt))
    }

    /// The record of a shard in its receipt; `None` if this client does all of the load.
    fn shard_record(&self, receipt: &LoadReceipt, dataset: Option<&Dataset>) -> Result<Option<ShardRecord>> {
        let Some(start_unix_ns) = self.start_unix_ns.filter(|_| !self.shard.is_whole()) else { return Ok(None) };
        let Shard { index, count } = self.shard;
        let LoadReceipt { seed, prompt_seed, limits, scenarios, targets, .. } = receipt;
        let common =
            (self, seed, prompt_seed, limits, scenarios, targets, dataset.map(|dataset| &dataset.sha256), count);
        let run = sha256::of(serde_json::to_vec(&common)?)[..16].to_owned();
        Ok(Some(ShardRecord { index, count, run, clock_unix_ns: start_unix_ns }))
    }

    /// The next level of the run: the scenario `scenario` under `arrivals`, which may keep `max_kept`.
    pub fn level(&self, receipt: &LoadReceipt, scenario: usize, arrivals: Arrivals, max_kept: u64) -> LoadPlan {
        LoadPlan {
            scenario: scenario as u32,
            shape: receipt.scenarios[scenario].clone(),
            arrivals,
            stop: self.stop.unwrap_or_else(|| usual_stop(arrivals, &receipt.limits)),
            warm_up_requests: self.warm_up_requests,
            ramp_ns: self.ramp_ns,
            shard: self.shard,
            seed: receipt.seed.wrapping_add(receipt.levels.len() as u64),
            prompts: self.prompts.clone(),
            max_kept,
        }
    }
}

fn usual_stop(arrivals: Arrivals, limits: &[Limit]) -> Stop {
    let users = u64::from(arrivals.users().unwrap_or(0));
    let needed = limits.iter().filter_map(|limit| samples_needed(limit.percentile?)).max().unwrap_or(0) as u64;
    // An interval takes more than a percentile, because requests depend on each other.
    let needed = DEPENDENT * needed;
    Stop::Requests { count: (REQUESTS_PER_USER * users).max(LEAST_REQUESTS).max(needed) }
}

/// The time, nanoseconds since 1970.
pub fn unix_ns() -> Result<u64> {
    let since = SystemTime::UNIX_EPOCH.elapsed().context("the clock stands before 1970; set it")?;
    u64::try_from(since.as_nanos()).context("a time beyond the year 2554")
}

/// The scenarios of the run, before any is made smaller.
fn scenarios(options: &flags::Prompts, own: &[Scenario]) -> Result<Vec<Scenario>> {
    if let (Some(input), Some(output)) = (options.input_tokens, options.output_tokens) {
        return Ok(vec![Scenario::plain("plain", input, output)]);
    }
    let known = if own.is_empty() { Scenario::defaults() } else { own.to_vec() };
    if options.scenario.is_empty() {
        return Ok(known);
    }
    let find = |name: &String| {
        let found = known.iter().find(|scenario| scenario.name == *name);
        let all: Vec<&str> = known.iter().map(|scenario| &*scenario.name).collect();
        found.cloned().with_context(|| format!("--scenario {name}: there is no such scenario, only {}", all.join(", ")))
    };
    options.scenario.iter().map(find).collect()
}
