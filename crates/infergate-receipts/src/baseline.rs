//! Baselines: sessions spread over time on one machine class, and the exact channel's reference.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::file_word;
use super::{BASELINE_SCHEMA, Build, Counter, Format, Machine, Output, ProbePair, ProcessSamples, Receipt};
use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;
use infergate_core::receipt::Work;

/// `baselines/<machine class>/<engine>-<model>.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`BASELINE_SCHEMA`].
    pub schema: String,
    /// The machine of the newest session; its class is the class of all of them.
    pub machine: Machine,
    /// Engine and model of the newest session.
    pub engine: EngineInfo,
    /// Threads of the newest session.
    pub threads: usize,
    /// Seed of synthetic weights and prompts.
    pub seed: u64,
    /// What must stay exactly the same.
    pub exact: Vec<ExactRecord>,
    /// What the model of the newest session holds, by name.
    #[serde(default)]
    pub held: BTreeMap<String, Counter>,
    /// Oldest first.
    pub sessions: Vec<Session>,
}

/// A case's exact reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExactRecord {
    /// Case id.
    pub id: Case,
    /// The greedy output.
    pub output: Output,
    /// Exact counters by name.
    pub counters: BTreeMap<String, Counter>,
}

/// One suite of several fresh processes: the unit of the stored channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// When it began, RFC 3339 in UTC.
    pub created: String,
    /// infergate's own version.
    pub tool: String,
    /// What was built.
    pub build: Build,
    /// Threads asked for.
    pub threads: usize,
    /// A change moved the times on purpose: from here on they are compared among themselves.
    #[serde(default)]
    pub step: bool,
    /// What the hardware gave.
    pub probes: Option<ProbePair>,
    /// One per case.
    pub cases: Vec<SessionCase>,
}

/// One case of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionCase {
    /// Case id.
    pub id: Case,
    /// What no implementation can avoid doing; `null` where the engine does not say.
    #[serde(default)]
    pub work: Option<Work>,
    /// One entry per fresh process, with one sample: the median of those that it took.
    pub processes: Vec<ProcessSamples>,
}

/// The sample with the process's median time: the middle one, or the mean of the two in the middle, token by token. The gate reads
/// no more of a session, and a baseline is committed.
fn median_sample(process: &ProcessSamples) -> ProcessSamples {
    let mut samples: Vec<&Vec<u64>> = process.samples_ns.iter().collect();
    samples.sort_by_key(|sample| sample.last());
    let middle = samples.get(samples.len().saturating_sub(1) / 2).zip(samples.get(samples.len() / 2));
    let mean = |(low, high): (&&Vec<u64>, &&Vec<u64>)| low.iter().zip(*high).map(|(a, b)| a.midpoint(*b)).collect();
    ProcessSamples { samples_ns: middle.map(mean).into_iter().collect(), ..*process }
}

impl From<&Receipt> for Session {
    fn from(receipt: &Receipt) -> Self {
        Self {
            created: receipt.created.clone(),
            tool: receipt.tool.clone(),
            build: receipt.build.clone(),
            threads: receipt.threads,
            step: false,
            probes: receipt.probes,
            cases: receipt
                .cases
                .iter()
                .map(|case| SessionCase {
                    id: case.id,
                    work: case.work,
                    processes: case.processes.iter().map(median_sample).collect(),
                })
                .collect(),
        }
    }
}

impl Baseline {
    /// A baseline of one session.
    pub fn from_receipt(receipt: &Receipt) -> Self {
        let mut baseline = Self { schema: BASELINE_SCHEMA.into(), ..Self::default() };
        baseline.add(receipt, false);
        baseline
    }

    /// Refuses a run that must not become a session of this baseline; ask before [`add`](Self::add).
    pub fn ensure_accepts(&self, receipt: &Receipt) -> Result<()> {
        receipt.ensure_blessable()?;
        self.ensure_same_subject(receipt)?;
        self.machine.ensure_same_class(&receipt.machine)?;
        ensure!(
            self.sessions.iter().all(|session| session.created != receipt.created),
            "the session of {} is in it already; measure a new one",
            receipt.created
        );
        Ok(())
    }

    /// Refuses a run of something else than this baseline's engine, model, dtype and seed.
    pub fn ensure_same_subject(&self, receipt: &Receipt) -> Result<()> {
        let (base, head) = (&self.engine, &receipt.engine);
        let subjects = [
            ("engine", base.name.clone(), head.name.clone()),
            ("model", base.model.clone(), head.model.clone()),
            ("dtype", base.dtype.clone(), head.dtype.clone()),
            ("seed", self.seed.to_string(), receipt.seed.to_string()),
        ];
        for (what, base, head) in subjects {
            ensure!(
                base == head,
                "the baseline's {what} is '{base}' and the run's is '{head}'; keep those of '{head}' in another folder, with --baselines"
            );
        }
        Ok(())
    }

    /// Adds `receipt` as a session, at its place in time; outputs and counters of the newest one are the exact reference of its cases.
    /// Counters that it did not count stay as they were known. With `step` its times are the first behind a step.
    pub fn add(&mut self, receipt: &Receipt, step: bool) {
        let place = self.sessions.partition_point(|session| session.created <= receipt.created);
        let is_newest = place == self.sessions.len();
        self.sessions.insert(place, Session { step, ..Session::from(receipt) });
        if is_newest {
            self.machine = receipt.machine.clone();
            self.engine = receipt.engine.clone();
            self.threads = receipt.threads;
            self.seed = receipt.seed;
            if !receipt.held.is_empty() {
                self.held.clone_from(&receipt.held);
            }
        }
        for case in &receipt.cases {
            let mut record = ExactRecord { id: case.id, output: case.output.clone(), counters: case.counters.clone() };
            match self.exact.iter_mut().find(|known| known.id == case.id) {
                Some(known) if is_newest => {
                    if record.counters.is_empty() {
                        record.counters = std::mem::take(&mut known.counters);
                    }
                    *known = record;
                }
                Some(_) => {}
                None => self.exact.push(record),
            }
        }
    }

    /// The file's name below `baselines/`: `<machine class>/<engine>-<model>.json`, safe on every file system.
    pub fn file_name(receipt: &Receipt) -> String {
        let [class, engine, model] =
            [&receipt.machine.class, &receipt.engine.name, &receipt.engine.model].map(|word| file_word(word));
        format!("{class}/{engine}-{model}.json")
    }
}

impl Format for Baseline {
    const SCHEMA: &'static str = BASELINE_SCHEMA;

    fn check(&self) -> Result<()> {
        ensure!(!self.sessions.is_empty(), "there are no sessions in it; bless one with the command `bless`");
        Ok(())
    }
}
