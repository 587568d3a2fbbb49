//! The file formats of what is measured, receipts and memory receipts, as versioned JSON. What is judged with them
//! (baselines, paired receipts, calibrations, verdicts) is defined in the same way where judging happens.
//!
//! Raw samples are kept and whatever can be derived is derived. Unknown fields are ignored, a newer major version is
//! refused. Missing is `null`.

mod fingerprint;
pub mod limits;
mod memory;
mod store;
mod subject;
mod write;

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Phase};
use crate::engine::{Device, EngineInfo};
use crate::sha256;
use crate::trace::Times;

pub use crate::metric::Metric;
pub use fingerprint::*;
pub use memory::*;
pub use store::*;
pub use subject::*;
pub use write::*;

/// Schema name of a [`Receipt`].
pub const RECEIPT_SCHEMA: &str = "infergate.receipt/1";
/// Everything one run of the suite measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// [`RECEIPT_SCHEMA`].
    pub schema: String,
    /// When the run began, RFC 3339 in UTC.
    pub created: String,
    /// The run was cut short: what is here was measured, and it never passes a gate.
    pub partial: bool,
    /// Invariants the run broke, one sentence each. Such a run gives no verdict.
    pub invalid: Vec<String>,
    /// infergate's own version.
    pub tool: String,
    /// Where it ran.
    pub machine: Machine,
    /// What was built.
    pub build: Build,
    /// Engine and model.
    pub engine: EngineInfo,
    /// Threads asked for.
    pub threads: usize,
    /// Seed of synthetic weights and prompts.
    pub seed: u64,
    /// SHA-256 of the user's own text that prompts were cut from, hex; `null` for the one that comes with infergate.
    pub prompt_text_sha256: Option<String>,
    /// What the hardware gave just before and after the suite.
    pub probes: Option<ProbePair>,
    /// One per case, in suite order.
    pub cases: Vec<CaseRecord>,
    /// One per fresh process: time to the very first token.
    pub cold: Vec<TtftParts>,
    /// Warm TTFT in parts, one per fresh process, after the cold one.
    pub warm: Vec<TtftParts>,
    /// The memory phase, in a process of its own; `null` where there was none.
    pub memory: Option<MemoryRecord>,
    /// As in [`MemoryReceipt`].
    #[serde(default)]
    pub held: BTreeMap<String, Counter>,
    /// How long the suite took, nanoseconds; left out where nobody looked.
    pub wall_ns: Option<u64>,
}

/// One case of a receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// Case id, for example `decode/p128`.
    pub id: Case,
    /// The greedy output, computed twice before time was taken.
    pub output: Output,
    /// What the output says, where it was asked for.
    pub text: Option<String>,
    /// Exact counters by name, for example `allocations_per_token`.
    pub counters: BTreeMap<String, Counter>,
    /// Least possible time on this hardware is derived from this work: bytes read and floating point operations of one sample.
    pub work: Option<Work>,
    /// Raw samples, one entry per fresh process.
    pub processes: Vec<ProcessSamples>,
}

/// The samples one process took of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessSamples {
    /// One per sample: `t_k - t_0` in nanoseconds for each token k of the timed region, summed over the iterations of the
    /// sample. Prefill and decode have one token, generate has N.
    pub samples_ns: Vec<Vec<u64>>,
    /// Iterations in each sample; more than one where a single iteration is short against reading the clock.
    pub iterations_per_sample: usize,
}

impl Default for ProcessSamples {
    fn default() -> Self {
        Self { samples_ns: Vec::new(), iterations_per_sample: 1 }
    }
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Output {
    /// SHA-256 of the greedy ids as little-endian u32, hex.
    pub sha256: String,
    /// The greedy ids.
    pub ids: Vec<u32>,
    /// Distance of the two best logits behind each id; `null` where the engine does not say.
    #[serde(default)]
    pub top2_margins: Vec<Option<f32>>,
    /// The numbers behind it; `null` from an older worker.
    pub fingerprint: Option<Fingerprint>,
    /// SHA-256 of the prompt's ids, made as `sha256`; `null` from an older worker.
    pub prompt_sha256: Option<String>,
}

/// An exact counter; a range when it does not repeat.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Counter {
    /// Smallest value seen.
    pub min: u64,
    /// Largest value seen.
    pub max: u64,
}

impl Counter {
    /// What both have seen.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// What one iteration of a criterion bench gets through.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Throughput {
    /// Of what.
    pub unit: ThroughputUnit,
    /// How many an iteration.
    pub per_iteration: u64,
}

/// What a throughput counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThroughputUnit {
    /// Bytes.
    Bytes,
    /// Whatever the bench counts.
    Elements,
}

/// Time to first token in parts, nanoseconds. They add up to the TTFT.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TtftParts {
    /// Prompt tokens.
    pub prompt_tokens: usize,
    /// Model load; `null` when the model was loaded already (warm).
    pub load_ns: Option<u64>,
    /// Text to tokens; `null` without a tokenizer.
    pub tokenize_ns: Option<u64>,
    /// Prompt to logits.
    pub prefill_ns: u64,
    /// Logits to the first token; `null` where the engine does not say, and then part of the prefill.
    pub first_sample_ns: Option<u64>,
}

impl TtftParts {
    /// The sum of the parts.
    pub fn ttft_ns(&self) -> u64 {
        let parts = [self.load_ns, self.tokenize_ns, Some(self.prefill_ns), self.first_sample_ns];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

/// The machine, without anything that names its owner.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system, architecture, CPU vendor and model, logical cores, in one file-name-safe word.
    pub class: String,
    /// `linux`, `macos`, `windows`.
    pub os: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// CPU model, for example `AMD EPYC`, with family and model numbers where the name alone is generic.
    pub cpu_model: String,
    /// Logical cores this process may use.
    pub logical_cores: usize,
    /// Installed memory, where the system says it.
    pub memory_bytes: Option<u64>,
    /// C library and version, for example `glibc 2.36`.
    pub libc: Option<String>,
    /// Widest vector extension: `avx512`, `avx2`, `neon`...
    pub instruction_set: Option<String>,
    /// Devices the engine computes on besides the processor, as it names them; part of the class.
    #[serde(default)]
    pub devices: Vec<Device>,
}

/// What was built, from what.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Build {
    /// Commit of the working tree; `null` outside git.
    pub commit: Option<String>,
    /// Whether the working tree had changes; `null` outside git.
    pub dirty: Option<bool>,
    /// `rustc --version`.
    pub rustc: String,
    /// Compiler flags.
    pub flags: String,
    /// Cargo profile's optimisation level.
    pub opt_level: String,
    /// Target triple.
    pub target: String,
    /// What cargo was told of features: `--features=cuda`; empty for the default ones, and for what was not built by the command.
    #[serde(default)]
    pub features: String,
    /// SHA-256 of the worker's file, hex; `null` where no worker was started.
    pub worker_sha256: Option<String>,
}

/// What the hardware gives, measured by loops that do nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// Memory read bandwidth with all threads of the suite, bytes per second.
    pub memory_read_bytes_per_s: f64,
    /// f32 multiply-adds in registers with all threads of the suite, floating point operations per second: two each.
    pub fma_flops_per_s: f64,
}

/// Probes before and after the suite, whose difference is drift, and the best of them and of those in between.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProbePair {
    /// Before the first case.
    pub before: Probes,
    /// After the last case; `null` when the run was cut short.
    pub after: Option<Probes>,
    /// Each rate the best of all probes around the cases: whatever disturbs a probe makes it slower.
    pub best: Option<Probes>,
}

impl Probes {
    /// Each rate the better of both.
    #[must_use]
    pub fn best_of(self, other: Self) -> Self {
        Self {
            memory_read_bytes_per_s: self.memory_read_bytes_per_s.max(other.memory_read_bytes_per_s),
            fma_flops_per_s: self.fma_flops_per_s.max(other.fma_flops_per_s),
        }
    }
}

impl ProbePair {
    /// The best that was seen of the hardware: what a case is a fraction of.
    pub fn best(&self) -> Probes {
        let ends = self.after.map_or(self.before, |after| self.before.best_of(after));
        self.best.map_or(ends, |best| best.best_of(ends))
    }
}

impl Build {
    /// The Cargo features, as messages name them.
    pub fn features(&self) -> &str {
        if self.features.is_empty() { "default" } else { &self.features }
    }
}

impl Receipt {
    /// Refuses a run that must not become a session of any baseline.
    ///
    /// # Errors
    /// A run that was cut short, broke an invariant, or has no cases.
    pub fn ensure_blessable(&self) -> Result<()> {
        ensure_usable(self.partial, &self.invalid)?;
        ensure!(!self.cases.is_empty(), "there are no cases in it; measure again");
        Ok(())
    }
}

impl Machine {
    /// Refuses the machine of a run that is of another class than this one of a baseline.
    ///
    /// # Errors
    /// With both classes.
    pub fn ensure_same_class(&self, of_run: &Self) -> Result<()> {
        ensure!(
            self.class == of_run.class,
            "the baseline's machine class is '{}' and the run's is '{}'; each class has a baseline of its own",
            self.class,
            of_run.class
        );
        Ok(())
    }
}

/// Refuses a run that was cut short or broke an invariant.
///
/// # Errors
/// Saying which.
pub fn ensure_usable(partial: bool, invalid: &[String]) -> Result<()> {
    ensure!(!partial, "the run was cut short and cannot become a baseline; measure again");
    invalid.first().map_or(Ok(()), |reason| bail!("the run is invalid and cannot become a baseline: {reason}"))
}

impl ProcessSamples {
    /// All values of `metric` in the samples of a case of this phase; none where it is undefined.
    pub fn values(&self, metric: Metric, phase: Phase) -> Vec<f64> {
        match phase {
            Phase::Prefill | Phase::Generate => {
                self.token_times_ns().iter().flat_map(|token_ns| metric.of(Times::of_tokens(token_ns))).collect()
            }
            Phase::Decode => self.times_ns().into_iter().filter_map(|ns| metric.of_step(ns)).collect(),
            Phase::Bench if metric == Metric::Time => self.times_ns(),
            Phase::Bench => Vec::new(),
        }
    }

    /// The gated time of an iteration, from each sample: the whole of its timed region, nanoseconds.
    pub fn times_ns(&self) -> Vec<f64> {
        let iterations = self.iterations_per_sample.max(1) as f64;
        self.samples_ns.iter().filter_map(|sample| sample.last()).map(|ns| *ns as f64 / iterations).collect()
    }

    /// When each token of an iteration of each sample came, to the nanosecond (generate and prefill; a decode sample is one
    /// gap). Times that decrease are none.
    pub fn token_times_ns(&self) -> Vec<Vec<u64>> {
        let iterations = self.iterations_per_sample.max(1) as u64;
        let each = |sample: &Vec<u64>| sample.iter().map(|ns| ns / iterations).collect();
        self.samples_ns.iter().filter(|sample| sample.is_sorted()).map(each).collect()
    }
}

/// SHA-256 of `ids` as little-endian u32, hex.
pub fn output_sha256(ids: &[u32]) -> String {
    sha256::of(ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>())
}

/// Now, RFC 3339 in UTC, to the second.
pub fn timestamp() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// `text` in lower case with everything but letters, digits, dots and underscores turned into single dashes. Never empty,
/// hidden or a way out of its folder: a receipt is someone else's file.
pub fn file_word(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '_') => word.push(c),
            '.' if !word.is_empty() => word.push('.'),
            _ if word.ends_with('-') || word.is_empty() => {}
            _ => word.push('-'),
        }
    }
    let word = word.trim_end_matches(['-', '.']);
    if word.is_empty() { "unnamed".into() } else { word.to_owned() }
}

/// Processor time of a process between its answer to a timed request and the next request, summed over all of these.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Idle {
    /// Processor time of all its threads, nanoseconds.
    pub cpu_ns: u64,
    /// The same time by the clock, nanoseconds.
    pub wall_ns: u64,
}

impl Idle {
    /// Cores in use: 1 is one core all the time. `None` where no time passed.
    pub fn cores(self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.cpu_ns as f64 / self.wall_ns as f64)
    }
}

/// Work of one sample that no implementation can avoid.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Work {
    /// Bytes read from memory while decoding.
    pub bytes: f64,
    /// Floating point operations while reading the prompt.
    pub flops: f64,
}
