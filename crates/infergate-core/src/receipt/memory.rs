//! The receipt of the memory phase: loading, one generation, a hundred of them, and exact counters.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::limits::MAX_MEMORY_RUNS;
use super::{Build, Counter, Machine};
use crate::case::Case;
use crate::engine::EngineInfo;

/// Schema name of a [`MemoryReceipt`].
pub const MEMORY_SCHEMA: &str = "infergate.memory/1";

/// What is live after the counted cases: it depends on which they are.
pub const LIVE_BYTES_AT_REST: &str = "live_bytes_at_rest";
/// The largest live heap while the model loads: it depends on how the threads meet that load it.
pub const PEAK_LIVE_BYTES_LOADING: &str = "peak_live_bytes_loading";
/// What the system says that a model takes, whoever allocated it: anonymous pages (heaps of all languages, copies of mapped files)
/// once it is loaded and after the counted cases, and the largest resident set until then. It varies by pages.
pub const SYSTEM_COUNTERS: [&str; 3] = ["anonymous_bytes_loaded", "anonymous_bytes_at_rest", "peak_resident_bytes"];

/// One memory phase, measured by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryReceipt {
    /// [`MEMORY_SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339 in UTC.
    pub created: String,
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
    /// Exact counters, one entry per case.
    pub counted: Vec<CountedCase>,
    /// What the model holds, by name: `live_bytes_loaded`, `peak_live_bytes_loading`, `live_bytes_at_rest` and [`SYSTEM_COUNTERS`],
    /// above what there was before it was loaded; empty where no generation was counted.
    #[serde(default)]
    pub held: BTreeMap<String, Counter>,
    /// The rest.
    pub memory: MemoryRecord,
}

/// What a memory phase saw, counters aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// The phase was cut short: it never passes.
    pub partial: bool,
    /// Invariants it broke, or how the process ended that should not have, one sentence each.
    pub invalid: Vec<String>,
    /// What this system or this worker cannot say, one sentence each.
    pub missing: Vec<String>,
    /// Loading the model.
    pub load: LoadMemory,
    /// One generation.
    pub inference: Option<InferenceMemory>,
    /// The generation that was repeated.
    pub case: Case,
    /// Runs before the first one that counts.
    pub warm_up_runs: usize,
    /// Runs the verdict is reached by; `runs` holds twice as many where memory rose and was followed further.
    pub asked_runs: usize,
    /// After each run, oldest first.
    pub runs: MemorySeries,
    /// Where allocations that outlive their run come from, the largest first; empty unless the heap leaks.
    pub sites: Vec<LeakSite>,
}

/// Memory of the process at one moment, bytes, and what else it holds. `null`: not known here.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MemorySample {
    /// Bytes the program has allocated and not freed, by its own counting allocator.
    pub live_bytes: Option<u64>,
    /// Allocations it has not freed.
    pub live_blocks: Option<u64>,
    /// Resident set, what was moved to swap included where the system says it.
    pub rss_bytes: Option<u64>,
    /// Resident and backed by no file: heaps, stacks, anonymous maps. Linux only.
    pub anonymous_bytes: Option<u64>,
    /// Resident and backed by a file: mapped weights, the program itself. Linux only.
    pub mapped_bytes: Option<u64>,
    /// Open file descriptors. Linux only.
    pub open_files: Option<u64>,
    /// Threads. Linux only.
    pub threads: Option<u64>,
}

/// Memory around the load of the model.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadMemory {
    /// Before.
    pub before: MemorySample,
    /// After, freed memory returned to the system.
    pub after: MemorySample,
    /// The largest resident set in between.
    pub peak_rss_bytes: Option<u64>,
    /// The largest live heap in between.
    pub peak_live_bytes: Option<u64>,
}

/// Memory of one generation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct InferenceMemory {
    /// KV cache of all its tokens, from the engine's own cost per token of context.
    pub cache_expected_bytes: Option<u64>,
    /// What a second sequence over the same weights takes before it has read anything: a cache that is reserved when it is
    /// made. `null` where the engine cannot fork.
    pub sequence_bytes: Option<u64>,
    /// The largest live heap while the prompt was read, above what was live before.
    pub prefill_peak_bytes: Option<u64>,
    /// How much the live heap grew from just before the prompt to after the last token; negative when it shrank.
    pub growth_bytes: Option<i64>,
    /// How much of it came after the first token: a cache that grows with each step.
    pub decode_growth_bytes: Option<i64>,
}

/// What the leak rule looks at, a column each, one entry per run. A column is empty where the system does not say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemorySeries {
    /// As in [`MemorySample`].
    pub live_bytes: Vec<u64>,
    /// As in [`MemorySample`].
    pub live_blocks: Vec<u64>,
    /// As in [`MemorySample`].
    pub rss_bytes: Vec<u64>,
    /// As in [`MemorySample`].
    pub open_files: Vec<u64>,
    /// As in [`MemorySample`].
    pub threads: Vec<u64>,
}

impl MemorySeries {
    /// Appends one run. A column that the first run has no value for stays empty: a series with gaps has no trend.
    ///
    /// # Errors
    /// What the last run had and `sample` lacks, with the last number: `open files (1017 before)`. A process that has no file
    /// descriptor left cannot look at itself.
    pub fn push(&mut self, sample: &MemorySample) -> Result<(), String> {
        let before = self.len();
        let columns = [
            ("bytes of the heap", &mut self.live_bytes, sample.live_bytes),
            ("allocations", &mut self.live_blocks, sample.live_blocks),
            ("resident bytes", &mut self.rss_bytes, sample.rss_bytes),
            ("open files", &mut self.open_files, sample.open_files),
            ("threads", &mut self.threads, sample.threads),
        ];
        let lost = columns.iter().filter(|(.., value)| value.is_none());
        let lost = lost.filter_map(|(name, column, _)| Some(format!("{name} ({} before)", column.last()?)));
        let lost = lost.collect::<Vec<_>>().join(", ");
        if !lost.is_empty() {
            return Err(lost);
        }
        for (_, column, value) in columns {
            if column.len() == before {
                column.extend(value);
            }
        }
        Ok(())
    }

    /// Runs in it.
    pub fn len(&self) -> usize {
        let Self { live_bytes, live_blocks, rss_bytes, open_files, threads } = self;
        let columns = [live_bytes, live_blocks, rss_bytes, open_files, threads];
        columns.map(Vec::len).into_iter().max().unwrap_or(0)
    }

    /// Whether nothing ran, or nothing could be seen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A place in the program whose allocations outlived the run that made them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeakSite {
    /// Bytes a run.
    pub bytes_per_run: f64,
    /// Allocations a run.
    pub blocks_per_run: f64,
    /// `function at file:line`, innermost first, the allocator and the standard library left out.
    pub frames: Vec<String>,
}

/// A place that allocates, in an iteration: a prompt, or a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocationSite {
    /// Allocations.
    pub allocations: f64,
    /// Their bytes.
    pub bytes: f64,
    /// `function at file:line`, innermost first, the allocator and the standard library left out.
    pub frames: Vec<String>,
}

/// A case's exact counters and what it said meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountedCase {
    /// Case id.
    pub id: Case,
    /// SHA-256 of the greedy output, as in [`Output`](super::Output).
    pub output_sha256: String,
    /// By name, for example `allocations_per_token`.
    pub counters: BTreeMap<String, Counter>,
    /// By name, what two of a process's repeats reach: its second largest value, and of several processes the least of theirs. Empty
    /// where it is not known.
    #[serde(default)]
    pub reached_twice: BTreeMap<String, u64>,
}

impl CountedCase {
    /// From the values of one process's repeats, by name; a counter without values is left out.
    pub fn of_repeats(id: Case, output_sha256: String, repeats: BTreeMap<String, Vec<u64>>) -> Self {
        let (mut counters, mut reached_twice) = (BTreeMap::new(), BTreeMap::new());
        for (name, mut values) in repeats {
            values.sort_unstable();
            let (Some(min), Some(max)) = (values.first().copied(), values.last().copied()) else { continue };
            if let [.., second, _] = values[..] {
                reached_twice.insert(name.clone(), second);
            }
            counters.insert(name, Counter { min, max });
        }
        Self { id, output_sha256, counters, reached_twice }
    }

    /// Adds what a further process counted of the same case.
    pub fn add(&mut self, further: &Self) {
        for (name, counter) in &mut self.counters {
            *counter = further.counters.get(name).map_or(*counter, |further| counter.with(*further));
        }
        self.reached_twice.retain(|name, value| {
            let further = further.reached_twice.get(name);
            *value = further.map_or(*value, |further| (*value).min(*further));
            further.is_some()
        });
    }
}

impl MemoryRecord {
    /// Refuses a record of more runs than were asked for: a trend takes the square of them.
    ///
    /// # Errors
    /// With both numbers.
    pub fn validate(&self) -> Result<()> {
        let runs = self.runs.len();
        ensure!(
            self.asked_runs <= MAX_MEMORY_RUNS && runs <= 2 * self.asked_runs,
            "memory: {runs} runs where {} were requested; measure again",
            self.asked_runs
        );
        Ok(())
    }
}
