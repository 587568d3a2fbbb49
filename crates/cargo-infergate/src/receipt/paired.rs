//! The receipt of a paired run: base and head in turn, block by block.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::built_with::BuiltWith;
use super::layouts::{BlockLayouts, LayoutFiles, validate_layouts};
use super::other_length::{OtherLength, validate_other_lengths};
use super::paired_case::PairedCase;
use super::share::ShareRecord;
use super::side::Side;
use super::window::{LoadCase, WindowRecord, validate_windows};
use super::{Allocated, Build, CodeRecord, CountedCase, Counter, Explained, Machine, MemoryRecord, Note, Terms};
use infergate_core::case::Case;
use infergate_core::engine::EngineInfo;
use infergate_core::receipt::Idle;
use infergate_core::receipt::limits::{
    MAX_ALL_BLOCKS, MAX_BLOCKS, MAX_CASES, MAX_NOTES, MAX_PAIRED_CASES, MAX_SAMPLES, at_most, in_range,
};
use infergate_core::receipt::validate::{validate_counters, validate_engine, validate_exact};

/// Schema name of a [`PairedReceipt`].
pub const PAIRED_SCHEMA: &str = "infergate.paired/1";

/// The largest threshold, as of the key of that name, and the widest spread.
pub(super) const MAX_RATIO: f64 = 100.0;

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
    /// What both sides say to prompts of lengths that no case has, untimed; empty of benches, and in an older file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_lengths: Vec<OtherLength>,
    /// In the order they were measured.
    pub blocks: Vec<BlockRecord>,
    /// Head's memory phase, in a process of its own; `null` where there was none.
    #[serde(default)]
    pub memory: Option<MemoryRecord>,
    /// Servers of each side that ran already, so that blocks started none: the i-th block, the first being 0, asked the one of
    /// each side whose number is i modulo this. `null` where each block started processes of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<usize>,
    /// Builds of each side that do the same and are laid out differently, of which each block started one; `null` where each
    /// side had one build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<LayoutFiles>,
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

impl SideRecord {
    /// Refuses a side that cannot be judged.
    pub(super) fn validate(&self) -> Result<()> {
        at_most(self.counted.len(), MAX_CASES, "cases")?;
        at_most(self.unmatched.len(), MAX_CASES, "benches")?;
        for counted in &self.counted {
            counted.validate()?;
        }
        validate_counters("the model", &self.held)?;
        validate_engine(&self.engine)
    }
}

/// One fresh process of each side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockRecord {
    /// The side whose process was started first.
    pub started_first: Side,
    /// The side that ran first in the first pair of each case; they take turns from pair to pair.
    pub ran_first: Side,
    /// Which build of each side it started; `null` where each side had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<BlockLayouts>,
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
    /// for other cases, and in receipts that are older than this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_tokens_ns: Vec<Vec<u64>>,
    /// The same of head's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub head_tokens_ns: Vec<Vec<u64>>,
}

impl BlockCase {
    /// Times of samples alone.
    pub fn new(id: Case, base_ns: Vec<u64>, head_ns: Vec<u64>) -> Self {
        Self { id, base_ns, head_ns, base_tokens_ns: Vec::new(), head_tokens_ns: Vec::new() }
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

    /// Refuses a receipt that cannot be judged.
    pub fn validate(&self) -> Result<()> {
        let is_share = self.share.is_some_and(|share| share.of > 1);
        // Those of head can all have failed.
        let has_some = !self.cases.is_empty() || !self.broken.is_empty();
        ensure!(has_some || self.partial || is_share, "there are no cases in it; measure again");
        at_most(self.invalid.len(), MAX_NOTES, "broken invariants")?;
        at_most(self.notes.len(), MAX_NOTES, "notes")?;
        at_most(self.built_with.features.len(), MAX_NOTES, "features")?;
        self.terms.as_ref().map_or(Ok(()), Terms::validate).map_err(|error| anyhow!("accept: {error:#}"))?;
        let known = validate_suite(&self.cases, |case| self.is_same_code_of(case))?;
        let under_load = self.cases.iter().find(|case| case.load.is_some() && self.head.engine.name != "server");
        if let Some(case) = under_load {
            bail!("{}: is under load, and head is no server; the file was edited", case.id);
        }
        validate_other_lengths(&self.other_lengths)?;
        at_most(self.blocks.len(), MAX_ALL_BLOCKS, "blocks")?;
        at_most(self.servers.unwrap_or_default(), MAX_BLOCKS, "servers")?;
        ensure!(self.servers != Some(0), "it was measured on no servers; the file was edited");
        let mut blocks_of: BTreeMap<Case, usize> = BTreeMap::new();
        for (at, block) in self.blocks.iter().enumerate() {
            let sound = validate_block(block, &known).and_then(|()| validate_windows(block, &self.cases));
            sound.map_err(|error| anyhow!("block {}: {error:#}", at + 1))?;
            block.cases.iter().for_each(|case| *blocks_of.entry(case.id).or_default() += 1);
        }
        for (case, blocks) in blocks_of {
            at_most(blocks, MAX_BLOCKS, format_args!("blocks of {case}"))?;
        }
        for (side, record) in [(Side::Base, &self.base), (Side::Head, &self.head)] {
            record.validate().map_err(|error| anyhow!("{}: {error:#}", side.name()))?;
        }
        validate_layouts(self.layouts.as_ref(), &self.blocks)?;
        if let Some(code) = &self.code {
            code.validate()?;
            ensure!(!code.same || self.blocks.is_empty(), "the same code was timed; the file was edited");
        }
        at_most(self.allocated.len(), MAX_PAIRED_CASES, "cases that allocate")?;
        self.allocated.iter().try_for_each(Allocated::validate)?;
        at_most(self.explained.len(), MAX_PAIRED_CASES, "explained cases")?;
        for explained in &self.explained {
            explained.validate().map_err(|error| anyhow!("{}: {error:#}", explained.id))?;
        }
        self.share.as_ref().map_or(Ok(()), ShareRecord::validate)?;
        self.memory.as_ref().map_or(Ok(()), MemoryRecord::validate)
    }
}

/// Every case is there once, with outputs as long as it asks for, and a threshold that is one. Of the same code nothing is timed.
pub(super) fn validate_suite(cases: &[PairedCase], same_code: impl Fn(Case) -> bool) -> Result<Vec<Case>> {
    at_most(cases.len(), MAX_PAIRED_CASES, "cases")?;
    let mut seen = Vec::new();
    for case in cases {
        ensure!(!seen.contains(&case.id), "{}: is there twice; the file was edited", case.id);
        seen.push(case.id);
        for threshold in std::iter::once(case.threshold).chain(case.mean.map(|mean| mean.threshold)) {
            ensure!(
                threshold > 1.0 && threshold <= MAX_RATIO,
                "{}: its threshold is {threshold}, which is no ratio above 1 and up to {MAX_RATIO}; measure again",
                case.id
            );
        }
        case.load.iter().try_for_each(LoadCase::validate).map_err(|error| anyhow!("{}: {error:#}", case.id))?;
        ensure!(case.iterations_per_sample > 0, "{}: a sample of zero iterations; the file was edited", case.id);
        let spreads = [case.expected_std, case.mean.and_then(|mean| mean.expected_std), case.layout_std];
        ensure!(
            spreads.into_iter().flatten().all(|std| (0.0..=MAX_RATIO).contains(&std)),
            "{}: an expected spread of it is no number from 0 to {MAX_RATIO}; measure again",
            case.id
        );
        ensure!(
            case.timed || same_code(case.id) || case.base_output != case.head_output,
            "{}: was not timed although its output is the same; the file was edited",
            case.id
        );
        for (side, output) in [(Side::Base, &case.base_output), (Side::Head, &case.head_output)] {
            validate_exact(case.id, output, &Default::default())
                .map_err(|error| anyhow!("{}: {error:#}", side.name()))?;
        }
    }
    Ok(seen)
}

/// Every case of a block is known, there once, and has as many sound times of one side as of the other.
pub(super) fn validate_block(block: &BlockRecord, known: &[Case]) -> Result<()> {
    for (at, case) in block.cases.iter().enumerate() {
        ensure!(known.contains(&case.id), "{}: is not in the suite; the file was edited", case.id);
        ensure!(
            block.cases[..at].iter().all(|other| other.id != case.id),
            "{}: is there twice; the file was edited",
            case.id
        );
        validate_times(case.id, &case.base_ns, &case.head_ns)?;
        ensure!(
            case.log_ratios().is_some(),
            "{}: a time is zero, or the sides have different numbers of times; measure again",
            case.id
        );
        validate_tokens(case.id, &case.base_tokens_ns, &case.base_ns)?;
        validate_tokens(case.id, &case.head_tokens_ns, &case.head_ns)?;
    }
    Ok(())
}

/// The tokens of generations end where the generations do, one list each, or there are none.
fn validate_tokens(id: Case, tokens_ns: &[Vec<u64>], times_ns: &[u64]) -> Result<()> {
    ensure!(
        tokens_ns.is_empty() || tokens_ns.len() == times_ns.len(),
        "{id}: the tokens of {} generations beside the times of {}; measure again",
        tokens_ns.len(),
        times_ns.len()
    );
    for (tokens, time_ns) in tokens_ns.iter().zip(times_ns) {
        ensure!(
            tokens.len() == id.output_tokens() && tokens.is_sorted() && tokens.last() == Some(time_ns),
            "{id}: token times that decrease, are too few, or end before the generation does; measure again"
        );
    }
    Ok(())
}

/// Times that a run can have taken, and not too many of them.
pub(super) fn validate_times(id: Case, base_ns: &[u64], head_ns: &[u64]) -> Result<()> {
    at_most(base_ns.len().max(head_ns.len()), MAX_SAMPLES, format_args!("times of {id} in a block"))?;
    in_range(base_ns.iter().chain(head_ns).copied(), format_args!("{id}: a time in nanoseconds"))
}
