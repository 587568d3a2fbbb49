//! The receipt of a paired run: base and head in turn, block by block.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::alike::AlikeRecord;
use super::built_with::BuiltWith;
use super::other_length::OtherLength;
use super::paired_case::PairedCase;
use super::share::ShareRecord;
use super::side::Side;
use super::window::WindowRecord;
use super::{
    Allocated, Build, CodeRecord, CountedCase, Counter, Explained, Format, Machine, MemoryRecord, Note, Terms, Took,
    validate_accepts,
};
use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;
use infergate_core::receipt::Idle;
use infergate_core::receipt::limits::{MAX_BLOCKS, MAX_PAIRED_CASES};
use infergate_core::stats::{mean, median};

/// Schema name of a [`PairedReceipt`].
pub const PAIRED_SCHEMA: &str = "infergate.paired/1";

/// Everything one paired run measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_lengths: Vec<OtherLength>,
    /// Where the time of the run went.
    #[serde(default)]
    pub took: Took,
    /// In the order they were measured.
    pub blocks: Vec<BlockRecord>,
    /// Head's memory phase, in a process of its own; `null` where there was none.
    #[serde(default)]
    pub memory: Option<MemoryRecord>,
    /// Servers of each side that ran already, so that blocks started none: the i-th block, the first being 0, asked the one of
    /// each side whose number is i modulo this. `null` where each block started processes of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<usize>,
    /// The builds that were timed where both sides were laid out alike; `null` where each side was timed as it was linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<AlikeRecord>,
    /// How the machine code of both sides differs; `null` where it was not compared.
    #[serde(default)]
    pub code: Option<CodeRecord>,
    /// By whose settings it is judged, and what head declares as intended; `null` where head was compared with no revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// How the bench target was chosen and built, beside its name.
    #[serde(default, skip_serializing_if = "BuiltWith::is_nothing")]
    pub built_with: BuiltWith,
    /// What the command found of both sides before and after it measured: how they were built, what head changes of the gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The share of a suite that this is; `null` where it is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ShareRecord>,
    /// Which functions took the time of cases that are slower; empty where none was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<Explained>,
    /// Where cases allocate that make more allocations, or larger ones; empty where none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<Allocated>,
}

/// One side of a paired run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<String, Counter>,
    /// Criterion benches that were asked for and that the other side does not have, so that nothing was compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub unmatched: Vec<Case>,
}

/// One fresh process of each side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockRecord {
    /// The side whose process was started first.
    pub started_first: Side,
    /// The side that ran first in the first pair of each case; they take turns from pair to pair.
    pub ran_first: Side,
    /// What base's process computed between its calls, while head had its turn; `null` where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_idle: Option<Idle>,
    /// The same of head's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_idle: Option<Idle>,
    /// The cases not settled when the block began.
    pub cases: Vec<BlockCase>,
    /// The windows of load on servers, in the order they were measured; empty where there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowRecord>,
}

/// One case in one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCase {
    /// Case id.
    #[schemars(with = "String")]
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
    /// Of each pair of processes whose samples were dropped for one pair of medians, since they are too many to upload: what their means
    /// were. Empty where all samples are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub means: Vec<Means>,
    /// The placements of what changed that were timed: times of as many fresh pairs of processes, each with an equal number of times, stand
    /// one behind the other in this order. Empty where both sides were timed as they were linked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<usize>,
}

/// Mean times of a pair of processes, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        let mean_ns = |times: &[u64]| mean(&times.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
        self.of_each_pair()
            .map(|(base, head)| Some(Means { base_ns: mean_ns(base)?, head_ns: mean_ns(head)? }))
            .collect()
    }

    /// The same with a pair of medians in place of all samples of a pair of processes. `None` for times that are no times.
    pub fn without_samples(&self) -> Option<Self> {
        let medians = |(base, head): (&[u64], &[u64])| {
            let base_ns = median(&base.iter().map(|ns| *ns as f64).collect::<Vec<_>>())?;
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
    pairs.map(|(base, head)| infergate_core::stats::log_ratio(*base as f64, *head as f64)).collect()
}

impl PairedReceipt {
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
        let here = self.cases.iter().filter(|case| case.timed).count();
        self.share.map_or(0, |share| share.suite_cases.saturating_sub(here))
    }
}

impl Format for PairedReceipt {
    const SCHEMA: &'static str = PAIRED_SCHEMA;

    fn check(&self) -> Result<()> {
        let is_share = self.share.is_some_and(|share| share.of > 1);
        // Those of head can all have failed.
        let has_some = !self.cases.is_empty() || !self.broken.is_empty();
        ensure!(has_some || self.partial || is_share, "there are no cases in it; measure again");
        ensure!(self.cases.len() <= MAX_PAIRED_CASES, "it has more than {MAX_PAIRED_CASES} cases; measure fewer");
        ensure!(self.servers != Some(0), "it was measured on no servers; measure again");
        ensure!(
            self.share.is_none_or(|share| (1..=share.of).contains(&share.number)),
            "there is no such share of a suite; measure again"
        );
        let known: BTreeSet<Case> = self.cases.iter().map(|case| case.id).collect();
        ensure!(known.len() == self.cases.len(), "a case is there twice; measure again");
        for case in &self.cases {
            let thresholds = std::iter::once(case.threshold).chain(case.mean.map(|mean| mean.threshold));
            ensure!(
                thresholds.into_iter().all(|threshold| threshold > 1.0) && case.iterations_per_sample > 0,
                "{}: its threshold is no ratio above 1, or its samples have no iterations; measure again",
                case.id
            );
        }
        let mut blocks_of: BTreeMap<Case, usize> = BTreeMap::new();
        for block in &self.blocks {
            validate_block(block, &known)?;
            block.cases.iter().for_each(|case| *blocks_of.entry(case.id).or_default() += 1);
        }
        ensure!(
            blocks_of.values().all(|blocks| *blocks <= MAX_BLOCKS),
            "a case has more than {MAX_BLOCKS} blocks; measure again"
        );
        for accepts in self.terms.iter().flat_map(|terms| [&terms.accept, &terms.accepted_before]) {
            validate_accepts(accepts)?;
        }
        self.memory.as_ref().map_or(Ok(()), MemoryRecord::validate)
    }
}

/// Every case of a block is known, there once, and has as many times of one side as of the other.
pub(super) fn validate_block(block: &BlockRecord, known: &BTreeSet<Case>) -> Result<()> {
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
    }
    Ok(())
}
