//! The receipt of a paired run: base and head in turn, block by block.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::window::{LoadCase, WindowRecord};
use super::{
    Allocated, Build, CountedCase, Counter, Explained, Format, Machine, MemoryRecord, Metric, Note, Output, Terms,
    Throughput, validate_accepts,
};
use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;
use infergate_core::receipt::Idle;
use infergate_core::receipt::limits::{MAX_BLOCKS, MAX_PAIRED_CASES};
use infergate_core::stats::{floats, log_ratio, mean, median};
use infergate_load::receipt::MAX_SHARDS;

/// Schema name of a [`PairedReceipt`].
pub const PAIRED_SCHEMA: &str = "infergate.paired/1";

/// Everything one paired run measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PairedReceipt {
    /// [`PAIRED_SCHEMA`].
    pub schema: String,
    /// When the run began, RFC 3339 in UTC.
    pub created: String,
    /// The run was cut short by its user; it never passes a gate.
    #[serde(default)]
    pub partial: bool,
    /// The time asked for was used up before every case was settled.
    #[serde(default)]
    pub out_of_time: bool,
    /// Invariants the run broke, one sentence each. Such a run gives no verdict.
    #[serde(default)]
    pub invalid: Vec<String>,
    /// Benches, bench targets and phases that fail in head, or fail there alone, one sentence each. The others are judged, and the run
    /// never passes.
    #[serde(default)]
    pub broken: Vec<String>,
    /// infergate's own version, of the side that asked.
    pub tool: String,
    /// Where it ran.
    pub machine: Machine,
    /// What head is compared with.
    pub base: SideRecord,
    /// What is judged.
    pub head: SideRecord,
    /// Threads asked for.
    pub threads: usize,
    /// Seed of weights, prompts and of the order within blocks.
    pub seed: u64,
    /// The suite, fixed before the first block.
    pub cases: Vec<PairedCase>,
    /// What both sides say to prompts of lengths that no case has, untimed; empty of benches.
    #[serde(default)]
    pub other_lengths: Vec<OtherLength>,
    /// Where the time of the run went.
    #[serde(default)]
    pub took: Took,
    /// In the order they were measured.
    pub blocks: Vec<BlockRecord>,
    /// Head's memory phase, in a process of its own; `null` where there was none.
    pub memory: Option<MemoryRecord>,
    /// Servers of each side that ran already, so that blocks started none: the i-th block, the first being 0, asked the one of
    /// each side whose number is i modulo this. `null` where each block started processes of its own.
    pub servers: Option<usize>,
    /// The builds that were timed where both sides were laid out alike; `null` where each side was timed as it was linked.
    pub alike: Option<AlikeRecord>,
    /// How the machine code of both sides differs; `null` where it was not compared.
    pub code: Option<CodeRecord>,
    /// By whose settings it is judged, and what head declares as intended; `null` where head was compared with no revision.
    pub terms: Option<Terms>,
    /// How the bench target was chosen and built, beside its name.
    #[serde(default)]
    pub built_with: BuiltWith,
    /// What the command found of both sides before and after it measured: how they were built, what head changes of the gate.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// The shard of a suite that this is; `null` for the whole suite.
    pub share: Option<SuiteShard>,
    /// Which functions took the time of cases that are slower; empty where none was looked at.
    #[serde(default)]
    pub explained: Vec<Explained>,
    /// Where cases allocate that make more allocations, or larger ones; empty where none does.
    #[serde(default)]
    pub allocated: Vec<Allocated>,
}

/// One case of the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedCase {
    /// Case id.
    pub id: Case,
    /// The ratio head / base from which on a slowdown fails, for example 1.02.
    pub threshold: f64,
    /// The ratio that has to be excluded where noise leaves the threshold undecided, for example 1.05; no more than the threshold: none.
    pub widest: f64,
    /// Pairs of samples in a block, chosen from the pilot.
    pub pairs: usize,
    /// Iterations in each sample, chosen from the pilot; more than one where a single iteration is shorter than a turn.
    pub iterations_per_sample: usize,
    /// Whether one more iteration goes before each sample and does not count, since the first one of a bench's closure takes longer.
    #[serde(default)]
    pub warm_up: bool,
    /// Whether one thread computes it: its processes then take turns on one core.
    #[serde(default)]
    pub one_core: bool,
    /// Tokens of a generation in one turn; `null` where each sample is a turn.
    #[serde(default)]
    pub turn_tokens: Option<usize>,
    /// What base said.
    pub base_output: Output,
    /// What head said. Where it is not the same, the case was not timed unless that was allowed.
    pub head_output: Output,
    /// Whether time was taken of this case.
    pub timed: bool,
    /// Standard deviation expected of a block's ln ratio before the first block was measured, from a calibration of this
    /// machine class or from the pilot; `null` where there was neither.
    pub expected_std: Option<f64>,
    /// The test of its means; `null` under load, which has none.
    pub mean: Option<MeanTest>,
    /// What an iteration of head gets through, where a criterion bench says so.
    pub throughput: Option<Throughput>,
    /// What it is where it is measured in windows of load; its samples are then one number of each window.
    pub load: Option<LoadCase>,
}

impl PairedCase {
    /// What is timed of it.
    pub fn metric(&self) -> Metric {
        self.load.as_ref().map_or_else(|| Metric::gated(self.id), |load| load.metric)
    }

    /// What a side said.
    pub fn output(&self, side: Side) -> &Output {
        match side {
            Side::Base => &self.base_output,
            Side::Head => &self.head_output,
        }
    }
}

/// The second test of a case: by the means of its blocks, which a stall of few samples moves and their medians do not show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanTest {
    /// The ratio of the means from which on a slowdown fails, for example 1.05.
    pub threshold: f64,
    /// Standard deviation expected of a block's ln ratio of means before the first block was measured; `null` where it was not
    /// known.
    pub expected_std: Option<f64>,
}

/// Base or head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// What is compared with.
    Base,
    /// What is judged.
    Head,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Base => Self::Head,
            Self::Head => Self::Base,
        }
    }

    /// `base` or `head`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Head => "head",
        }
    }
}

/// A shard: one of several runs that measure a suite together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SuiteShard {
    /// Which one, from 1.
    pub number: usize,
    /// Number of shards.
    pub of: usize,
    /// The timed cases of all shards.
    pub suite_cases: usize,
}

/// What both sides say to a prompt that is not timed. A mask or a tail can be wrong at some lengths alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherLength {
    /// The prefill of so many tokens: `prefill/p37`.
    pub id: Case,
    /// What base said.
    pub base_output: Output,
    /// What head said.
    pub head_output: Output,
}

/// Wall time of each part of a gate, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Checking out, building, comparing and linking both sides.
    pub builds_ns: u64,
    /// Comparing outputs, planning, and watching what cases run of what changed.
    pub pilot_ns: u64,
    /// Blocks.
    pub timing_ns: u64,
    /// Memory and allocations.
    pub counting_ns: u64,
    /// Looking for the functions that take the time.
    pub explaining_ns: u64,
}

impl Took {
    /// Adds the time of another bench target.
    pub fn add(&mut self, other: Self) {
        let Self { builds_ns, pilot_ns, timing_ns, counting_ns, explaining_ns } = self;
        let ours = [builds_ns, pilot_ns, timing_ns, counting_ns, explaining_ns];
        ours.into_iter().zip(other.parts()).for_each(|(ours, (_, its))| *ours = ours.saturating_add(its));
    }

    /// All that measures.
    pub fn measured(&self) -> Duration {
        Duration::from_nanos(self.pilot_ns.saturating_add(self.timing_ns).saturating_add(self.counting_ns))
    }

    /// Each part with its name, in order.
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        [
            ("builds", self.builds_ns),
            ("pilot", self.pilot_ns),
            ("timing", self.timing_ns),
            ("counting", self.counting_ns),
            ("explaining", self.explaining_ns),
        ]
    }
}

/// How alike both sides were laid out: each is linked once for each placement of what changed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AlikeRecord {
    /// Functions of base that lie at the same address in head, with the same code.
    pub same: usize,
    /// Functions of base.
    pub functions: usize,
}

impl AlikeRecord {
    /// Adds the builds of another bench target.
    pub fn extend(&mut self, other: Self) {
        self.same = self.same.saturating_add(other.same);
        self.functions = self.functions.saturating_add(other.functions);
    }
}

/// What cargo was told of a bench target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BuiltWith {
    /// Its package; `null`: that of the folder.
    pub package: Option<String>,
    /// Features of the package.
    pub features: Vec<String>,
    /// Whether its default features were left out.
    pub no_default_features: bool,
    /// The profile; `null`: cargo's own for benches.
    pub profile: Option<String>,
}

/// What was found before anything was timed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeRecord {
    /// Both load the same code and constants, and read the same files, so nothing was timed.
    pub same: bool,
    /// Cases that were not timed since nothing that changed can reach them: their program is the same, or they run none of it.
    #[serde(default)]
    pub same_cases: Vec<Case>,
    /// At most so many functions are in one alone, or have other instructions or constants; `null` where that is not known.
    pub changed: Option<usize>,
    /// The names of some of them.
    #[serde(default)]
    pub named: Vec<String>,
    /// How much of the changed code each case runs, found before it was timed.
    #[serde(default)]
    pub runs: Vec<CodeRuns>,
}

/// What a case runs of the functions that changed: in each build's own process, from its start on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodeRuns {
    /// The case.
    pub id: Case,
    /// How many of them run; `null` where that could not be watched.
    pub functions: Option<usize>,
    /// At most so many changed in its bench target; `null`: as many as of the whole run.
    pub changed: Option<usize>,
    /// The names of some of them.
    #[serde(default)]
    pub named: Vec<String>,
    /// Why it could not be watched, as a clause.
    pub why: Option<String>,
}

impl CodeRecord {
    /// Nothing differs.
    pub fn same() -> Self {
        Self { same: true, changed: Some(0), ..Self::default() }
    }

    /// Whether this case was watched, and not one of the functions that changed began in it.
    pub fn runs_nothing_changed(&self, case: Case) -> bool {
        self.runs.iter().any(|runs| runs.id == case && runs.functions == Some(0))
    }
}

/// One side of a paired run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SideRecord {
    /// infergate's version in its worker.
    pub tool: String,
    /// How it was built, from which commit.
    pub build: Build,
    /// Engine and model it loaded.
    pub engine: EngineInfo,
    /// Exact counters, from a process of its own; empty where it does not count.
    #[serde(default)]
    pub counted: Vec<CountedCase>,
    /// What the model holds, by name, from the same process.
    #[serde(default)]
    pub held: BTreeMap<String, Counter>,
    /// Criterion benches that were asked for and that the other side does not have, so that nothing was compared.
    #[serde(default)]
    pub unmatched: Vec<Case>,
}

/// One fresh process of each side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// The side that ran first in the first pair of each case; they take turns from pair to pair.
    pub ran_first: Side,
    /// What base's processes computed between their calls, while head had its turn; `null` where one does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_idle: Option<Idle>,
    /// The same of head's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_idle: Option<Idle>,
    /// The cases not settled when the block began.
    pub cases: Vec<BlockCase>,
    /// The windows of load on servers, in the order they were measured; empty where there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowRecord>,
}

/// One case in one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockCase {
    /// Case id.
    pub id: Case,
    /// Gated time of base's samples, nanoseconds, each the sum over [`PairedCase::iterations_per_sample`]; the i-th is paired
    /// with head's i-th.
    pub base_ns: Vec<u64>,
    /// Gated time of head's samples, nanoseconds.
    pub head_ns: Vec<u64>,
    /// `t_k - t_0` of each token k of each of base's generations, nanoseconds; pauses between turns are no part of it. Empty
    /// for other cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_tokens_ns: Vec<Vec<u64>>,
    /// The same of head's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub head_tokens_ns: Vec<Vec<u64>>,
    /// The means of each pair of processes whose samples were dropped for one pair of medians, since they are too many to upload. Empty
    /// where all samples are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub means: Vec<Means>,
    /// The placements of what changed that were timed: times of as many fresh pairs of processes, each with an equal number of times, stand
    /// one behind the other in this order. Empty where both sides were timed as they were linked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<usize>,
}

/// Mean times of a pair of processes, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Means {
    pub base_ns: f64,
    pub head_ns: f64,
}

impl BlockCase {
    /// Times of samples alone.
    pub fn new(id: Case, base_ns: Vec<u64>, head_ns: Vec<u64>) -> Self {
        Self {
            id,
            base_ns,
            head_ns,
            base_tokens_ns: Vec::new(),
            head_tokens_ns: Vec::new(),
            means: Vec::new(),
            placements: Vec::new(),
        }
    }

    /// Adds what another pair of processes of the same block measured.
    pub fn extend(&mut self, other: Self) {
        self.base_ns.extend(other.base_ns);
        self.head_ns.extend(other.head_ns);
        self.base_tokens_ns.extend(other.base_tokens_ns);
        self.head_tokens_ns.extend(other.head_tokens_ns);
        self.placements.extend(other.placements);
    }

    /// Base's times and head's of each pair of processes.
    pub fn of_each_pair(&self) -> impl Iterator<Item = (&[u64], &[u64])> {
        let times = (self.base_ns.len() / self.placements.len().max(1)).max(1);
        self.base_ns.chunks(times).zip(self.head_ns.chunks(times))
    }

    /// The means of each pair of processes; `None` for times that are no times.
    pub fn means_of_each_pair(&self) -> Option<Vec<Means>> {
        if !self.means.is_empty() {
            return Some(self.means.clone());
        }
        let mean_ns = |times: &[u64]| mean(&floats(times));
        self.of_each_pair()
            .map(|(base, head)| Some(Means { base_ns: mean_ns(base)?, head_ns: mean_ns(head)? }))
            .collect()
    }

    /// The same with a pair of medians in place of all samples of a pair of processes. `None` for times that are no times.
    pub fn without_samples(&self) -> Option<Self> {
        let medians = |(base, head): (&[u64], &[u64])| {
            let base_ns = median(&floats(base))?;
            let head_ns = base_ns * median(&log_ratios(base, head)?)?.exp();
            Some((base_ns.round().max(1.0) as u64, head_ns.round().max(1.0) as u64))
        };
        let (base_ns, head_ns) = self.of_each_pair().map(medians).collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let (means, placements) = (self.means_of_each_pair()?, self.placements.clone());
        Some(Self { means, placements, ..Self::new(self.id, base_ns, head_ns) })
    }

    /// ln(head / base) of each pair. `None` when a time is zero or the sides have different numbers of iterations.
    pub fn log_ratios(&self) -> Option<Vec<f64>> {
        log_ratios(&self.base_ns, &self.head_ns)
    }
}

/// ln(head / base) of each pair. `None` when a time is zero or the sides have different numbers of times.
pub fn log_ratios(base_ns: &[u64], head_ns: &[u64]) -> Option<Vec<f64>> {
    if base_ns.is_empty() || base_ns.len() != head_ns.len() {
        return None;
    }
    let pairs = base_ns.iter().zip(head_ns);
    pairs.map(|(base, head)| log_ratio(*base as f64, *head as f64)).collect()
}

/// The blocks of one case, in the order in which they were measured.
pub fn blocks_of(blocks: &[BlockRecord], case: Case) -> impl Iterator<Item = &BlockCase> {
    blocks.iter().flat_map(|block| &block.cases).filter(move |block| block.id == case)
}

impl PairedReceipt {
    /// The case of this name.
    pub fn case(&self, id: Case) -> Option<&PairedCase> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// The cases that are timed.
    pub fn timed(&self) -> impl Iterator<Item = &PairedCase> {
        self.cases.iter().filter(|case| case.timed)
    }

    /// Whether nothing was timed because both sides are the same program.
    pub fn is_same_code(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.same)
    }

    /// Whether `case` was not timed because both sides are the same program.
    pub fn is_same_code_of(&self, case: Case) -> bool {
        self.code.as_ref().is_some_and(|code| code.same || code.same_cases.contains(&case))
    }

    /// Timed cases of the suite that other runs measure.
    pub fn cases_elsewhere(&self) -> usize {
        let here = self.timed().count();
        self.share.map_or(0, |shard| shard.suite_cases.saturating_sub(here))
    }
}

impl Format for PairedReceipt {
    const SCHEMA: &'static str = PAIRED_SCHEMA;

    fn check(&self) -> Result<()> {
        let is_shard = self.share.is_some_and(|shard| shard.of > 1);
        // Those of head can all have failed.
        let has_some = !self.cases.is_empty() || !self.broken.is_empty();
        ensure!(has_some || self.partial || is_shard, "there are no cases in it; measure again");
        ensure!(self.cases.len() <= MAX_PAIRED_CASES, "it has more than {MAX_PAIRED_CASES} cases; measure fewer");
        ensure!(self.servers != Some(0), "it was measured on no servers; measure again");
        ensure!(
            self.share.is_none_or(|shard| shard.of <= MAX_SHARDS as usize && (1..=shard.of).contains(&shard.number)),
            "there is no such shard of a suite; measure again"
        );
        validate_blocks(&self.blocks, &validate_cases(&self.cases)?)?;
        for accepts in self.terms.iter().flat_map(|terms| [&terms.accept, &terms.accepted_before]) {
            validate_accepts(accepts)?;
        }
        self.memory.as_ref().map_or(Ok(()), MemoryRecord::validate)
    }
}

/// The cases, each there once and with what its times are judged by.
pub(super) fn validate_cases(cases: &[PairedCase]) -> Result<BTreeSet<Case>> {
    let known: BTreeSet<Case> = cases.iter().map(|case| case.id).collect();
    ensure!(known.len() == cases.len(), "a case is there twice; measure again");
    for case in cases {
        let thresholds = std::iter::once(case.threshold).chain(case.mean.map(|mean| mean.threshold));
        ensure!(
            thresholds.into_iter().all(|threshold| threshold > 1.0) && case.iterations_per_sample > 0,
            "{}: its threshold is no ratio above 1, or its samples have no iterations; measure again",
            case.id
        );
    }
    Ok(known)
}

/// Every case of a block is known, there once, and has as many times of one side as of the other.
pub(super) fn validate_blocks(blocks: &[BlockRecord], known: &BTreeSet<Case>) -> Result<()> {
    let mut counts: BTreeMap<Case, usize> = BTreeMap::new();
    for block in blocks {
        let mut seen = BTreeSet::new();
        for case in &block.cases {
            ensure!(
                known.contains(&case.id) && seen.insert(case.id),
                "{}: is not in the suite, or twice in a block; measure again",
                case.id
            );
            ensure!(
                case.log_ratios().is_some(),
                "{}: a time is zero, or the sides have different numbers of times; measure again",
                case.id
            );
            *counts.entry(case.id).or_default() += 1;
        }
    }
    ensure!(
        counts.values().all(|blocks| *blocks <= MAX_BLOCKS),
        "a case has more than {MAX_BLOCKS} blocks; measure again"
    );
    Ok(())
}
