//! Baselines of load runs: sessions spread over time, one a receipt.
//!
//! A load receipt has the time of every token and can be a hundred megabytes. A session keeps what is judged, a few
//! numbers a level. It does not keep URLs, prompts or answers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use infergate_core::load::Arrivals;
use serde::{Deserialize, Serialize};

use super::{LevelRecord, LoadReceipt, Scenario, TargetRecord};
use infergate_core::receipt::{Format, Machine, Metric, ensure_usable, file_word};

/// Schema name of a [`LoadBaseline`].
pub const LOAD_BASELINE_SCHEMA: &str = "infergate.load-baseline/1";
/// Characters of the targets' names in a file's name.
const MAX_NAME_CHARS: usize = 100;

/// `baselines/<machine class>/load/<model>-<API>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadBaseline {
    /// [`LOAD_BASELINE_SCHEMA`].
    pub schema: String,
    /// Where the client of the newest session ran; its class is the class of all of them.
    pub machine: Machine,
    /// What all sessions have in common, by name: `API`, `model`. A run that differs in one of these is not compared.
    pub setup: BTreeMap<String, String>,
    /// Oldest first.
    pub sessions: Vec<LoadSession>,
}

/// One load run: the unit of the stored channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSession {
    /// When it began, RFC 3339 in UTC.
    pub created: String,
    /// A change moved the times on purpose: from here on they are compared among themselves.
    #[serde(default)]
    pub step: bool,
    /// What may explain a change, by name: `rustc`, `threads`. The verdict names each that differs.
    pub conditions: BTreeMap<String, String>,
    /// One for each level, and for each target where there are several.
    pub levels: Vec<LoadSessionLevel>,
}

/// One scenario at one number of users or one rate, on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSessionLevel {
    /// The target's name among several; empty where it is the only one.
    pub target: String,
    /// What users did.
    pub scenario: Scenario,
    /// When requests started.
    pub arrivals: Arrivals,
    /// Requests that were sent.
    pub issued: u64,
    /// Of these, the ones that failed, without those of a wrong length and those given up when the run ended.
    pub failed: u64,
    /// Of these, the ones whose answers had not the length that was asked for.
    pub wrong_length: u64,
    /// Requests that the numbers below are from.
    pub measured: u64,
    /// Median time to first token, nanoseconds; `null` where too few requests have one.
    pub ttft_p50_ns: Option<f64>,
    /// Median gap between pieces of output, nanoseconds; `null` likewise.
    pub itl_p50_ns: Option<f64>,
    /// Median end-to-end latency, nanoseconds; `null` likewise.
    pub e2e_p50_ns: Option<f64>,
    /// Output tokens of all users together that came in the steady window, per second; `null` without such a window, and for one
    /// of several targets: the slowest one decides it for each.
    pub system_tokens_per_s: Option<f64>,
}

impl LoadReceipt {
    /// Refuses a part of a load: its levels are not those of the whole.
    pub fn ensure_whole(&self) -> Result<()> {
        ensure!(
            self.shards.len() != 1,
            "it is one shard of a load; put all shards together first, with the command `load merge`"
        );
        Ok(())
    }

    /// Refuses a run that must not become a session of a baseline.
    pub fn ensure_blessable(&self) -> Result<()> {
        ensure_usable(self.partial, &self.invalid)?;
        self.ensure_whole()
    }
}

impl LoadBaseline {
    /// Refuses a run that must not become a session of this baseline; ask before [`add`](Self::add).
    pub fn ensure_accepts(&self, receipt: &LoadReceipt) -> Result<()> {
        receipt.ensure_blessable()?;
        self.machine.ensure_same_class(&receipt.machine)?;
        if let Some((what, base, head)) = self.differing_setup(&setup(receipt)).into_iter().next() {
            bail!(
                "the baseline's {what} is '{base}' and the run's is '{head}'; keep it in another folder, with --baselines"
            );
        }
        ensure!(
            self.sessions.iter().all(|session| session.created != receipt.created),
            "the session of {} is in it already; measure a new one",
            receipt.created
        );
        Ok(())
    }

    /// What `other` has in another way: its name, this baseline's and the other's.
    pub fn differing_setup(&self, other: &BTreeMap<String, String>) -> Vec<(String, String, String)> {
        let keys: BTreeSet<&String> = self.setup.keys().chain(other.keys()).collect();
        let value = |setup: &BTreeMap<String, String>, key| setup.get(key).cloned().unwrap_or_else(|| "none".into());
        let differing = keys.into_iter().filter(|key| self.setup.get(*key) != other.get(*key));
        differing.map(|key| (key.clone(), value(&self.setup, key), value(other, key))).collect()
    }

    /// The file's name below `baselines/`, safe on every file system: `<machine class>/load/<model>-<API>.json`, or
    /// `<engine>-<model>` for a local engine.
    pub fn file_name(receipt: &LoadReceipt) -> String {
        let named: Vec<String> = receipt
            .targets
            .iter()
            .map(|target| match target {
                TargetRecord::Endpoint { model, api, .. } => format!("{model}-{api}"),
                TargetRecord::Local { engine, .. } => format!("{}-{}", engine.name, engine.model),
            })
            .collect();
        let named: String = named.join("-").chars().take(MAX_NAME_CHARS).collect();
        format!("{}/load/{}.json", file_word(&receipt.machine.class), file_word(&named))
    }
}

impl Format for LoadBaseline {
    const SCHEMA: &'static str = LOAD_BASELINE_SCHEMA;

    fn check(&self) -> Result<()> {
        ensure!(
            !self.sessions.is_empty(),
            "there are no sessions in it; bless a load receipt with the command `bless`"
        );
        Ok(())
    }
}

impl LoadSessionLevel {
    /// What is gated, each as a time, so that slower is always more. `None` where it was not measured.
    pub fn times_ns(&self) -> [(Metric, Option<f64>); 4] {
        let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
        let token_ns = positive(self.system_tokens_per_s).map(|rate| 1e9 / rate);
        [
            (Metric::Ttft, positive(self.ttft_p50_ns)),
            (Metric::Itl, positive(self.itl_p50_ns)),
            (Metric::E2e, positive(self.e2e_p50_ns)),
            (Metric::SystemToken, token_ns.filter(|ns| ns.is_finite())),
        ]
    }

    /// How it is named: `chatbot/8 users`, with the target in front where there are several.
    pub fn name(&self) -> String {
        let target = if self.target.is_empty() { String::new() } else { format!("{}/", self.target) };
        format!("{target}{}/{}", self.scenario.name, self.arrivals.name())
    }

    /// Levels with the same key put the same load on the same target.
    pub fn key(&self) -> String {
        format!("{:?} {:?} {:?}", self.target, self.scenario, self.arrivals)
    }
}

/// What makes two runs comparable besides their levels.
pub fn setup(receipt: &LoadReceipt) -> BTreeMap<String, String> {
    let mut setup = BTreeMap::new();
    for target in &receipt.targets {
        let mut is = |what: &str, value: String| drop(setup.insert(of_target(target, what), value));
        match target {
            TargetRecord::Endpoint { api, model, extensions, shared_prefix_tokens, .. } => {
                is("kind of target", "server".into());
                is("API", api.clone());
                is("model", model.clone());
                is("extensions", if extensions.is_empty() { "none".into() } else { extensions.join(", ") });
                is("shared prefix", format!("{shared_prefix_tokens} tokens"));
            }
            TargetRecord::Local { engine, .. } => {
                is("kind of target", "local engine".into());
                is("engine", engine.name.clone());
                is("model", engine.model.clone());
                is("dtype", engine.dtype.clone());
            }
        }
    }
    let dataset = receipt.dataset_prompts.map_or_else(|| "none".into(), |prompts| format!("{prompts} prompts"));
    setup.insert("dataset".into(), dataset);
    setup
}

/// What may explain a change.
pub fn conditions(receipt: &LoadReceipt) -> BTreeMap<String, String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let mut conditions = BTreeMap::new();
    for target in &receipt.targets {
        let TargetRecord::Local { engine, build, threads, .. } = target else { continue };
        let mut is = |what: &str, value: String| drop(conditions.insert(of_target(target, what), value));
        is("engine version", engine.version.clone());
        is("weights", text(&engine.weights_sha256));
        is("revision", text(&engine.revision));
        is("rustc", build.rustc.clone());
        is("compiler flags", build.flags.clone());
        is("optimisation level", build.opt_level.clone());
        is("target triple", build.target.clone());
        is("threads", threads.to_string());
        for (key, value) in &engine.settings {
            is(&format!("setting {key}"), value.clone());
        }
    }
    conditions.insert("infergate".into(), receipt.tool.clone());
    conditions.insert("seed".into(), receipt.seed.to_string());
    let is_open = |level: &&LevelRecord| matches!(level.arrivals, Arrivals::Open { .. });
    let slots = receipt.levels.iter().filter(is_open).find_map(|level| level.batch.as_ref()).map(|batch| batch.slots);
    conditions.extend(slots.map(|slots| ("slots".into(), slots.to_string())));
    conditions
}

fn of_target(target: &TargetRecord, what: &str) -> String {
    let name = target.name();
    if name.is_empty() { what.into() } else { format!("{what} of {name}") }
}
