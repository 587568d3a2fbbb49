//! The leak rule: does a process that does the same again and again need more and more memory?
//!
//! Two measures. The *heap*, counted by the worker's own allocator, is exact: a leak of one byte a run shows. The *resident
//! set* also sees what no allocator counts (maps, other languages' heaps), and is noisy: it needs a trend test and a floor.
//! What rises for either is confirmed by as many runs again, because a cache that fills rises too. Open files and threads are
//! counted as exactly as the heap, and are spoken of only where they leak.

mod heap;
mod resident;
mod tail;

pub use heap::{HeapGrowth, HeapTrend, heap_rises, heap_trend};
pub use resident::{ResidentTrend, growth_bytes, resident_trend, rises_in_each_quarter};

use serde::{Deserialize, Serialize};

use super::size;
use crate::as_text::words;
use crate::case::Case;
use crate::outcome::Outcome;
use crate::receipt::limits::MAX_MEMORY_RUNS;
use crate::receipt::{MemoryRecord, MemorySeries};

/// Fewer runs are not judged: a quarter of them has to hold a whole period of a bounded cache.
pub const MIN_RUNS: usize = 20;

/// Open files and threads that rise by less a run are no leak: a pool grows now and then.
const LEAST_COUNT_PER_RUN: f64 = 0.25;
/// Growth in both halves of the runs is even from this ratio on.
const EVEN: f64 = 0.8;
/// Growth in fewer runs is told as steps.
const FEWEST_OF_A_TREND: usize = 6;

/// Whose growth was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryMeasure {
    /// What the worker's own allocator counts.
    Heap,
    /// What the system says is resident.
    Resident,
    /// How many files are open. Only where they leak.
    OpenFiles,
    /// How many threads there are. Only where they leak.
    Threads,
}

impl MemoryMeasure {
    /// What it looks at, in a word.
    pub fn words(self) -> String {
        words(self)
    }
}

/// Memory over many runs of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MemoryEvidence {
    /// Whose growth it is: the heap's, as the worker's allocator counts it, the resident set's, or that of open files or threads.
    pub measure: MemoryMeasure,
    /// Runs that were followed after those that warm up.
    pub runs: Option<usize>,
    /// Growth, bytes a run; 0 for a heap that only moves, `null` where it was not seen.
    pub slope_bytes: Option<f64>,
    /// Open files or threads: growth, so many a run.
    pub count_per_run: Option<f64>,
    /// Resident set: growth from which on it counts, bytes a run.
    pub floor_bytes: Option<f64>,
    /// Resident set: p value of "it rises".
    pub p_rising: Option<f64>,
    /// The smallest leak these runs could have seen, bytes a run.
    pub smallest_leak_bytes: Option<f64>,
    /// A plateau: what grew and was kept, bytes.
    pub kept_bytes: Option<u64>,
}

/// What one measure shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The measure's decision.
    pub outcome: Outcome,
    /// Its numbers.
    pub evidence: MemoryEvidence,
    /// Whether a cache that still fills would grow like this leak.
    pub may_be_cache: bool,
    /// One sentence on why, where the numbers do not say it.
    pub note: Option<String>,
}

/// What the heap did over the runs asked for and those that confirm; `None` where they were not taken, or where it never rose: runs
/// that were taken because the resident set rose are looked at, too.
pub fn confirmed_heap(record: &MemoryRecord) -> Option<HeapTrend> {
    let live_bytes = &record.runs.live_bytes;
    let rose = [asked(record, live_bytes), live_bytes].iter().any(|runs| heap_rises(runs) == Some(true));
    heap_trend(live_bytes, record.asked_runs).filter(|_| rose)
}

/// Whether any measure rose over the runs asked for, so that as many again must tell a leak from a plateau.
pub fn needs_confirmation(record: &MemoryRecord) -> bool {
    let MemorySeries { live_bytes, open_files, threads, .. } = &record.runs;
    [live_bytes, open_files, threads].iter().any(|column| heap_rises(asked(record, column)) == Some(true))
        || resident_trend(asked(record, &record.runs.rss_bytes)).is_some_and(|resident| resident.rises())
}

/// What the heap and the resident set say, and open files and threads where they leak.
pub fn judge(record: &MemoryRecord) -> Vec<Finding> {
    let findings = [heap_finding(record), resident_finding(record)];
    let counted = [
        count_finding(record, MemoryMeasure::OpenFiles, &record.runs.open_files),
        count_finding(record, MemoryMeasure::Threads, &record.runs.threads),
    ];
    findings.into_iter().chain(counted.into_iter().flatten()).map(|finding| at_best(record, finding)).collect()
}

/// The heap's rule on what is counted one by one; `None` where it is no leak.
fn count_finding(record: &MemoryRecord, measure: MemoryMeasure, column: &[u64]) -> Option<Finding> {
    let trend = heap_trend(column, record.asked_runs)?;
    let leaks = trend.growth == HeapGrowth::Leak && trend.per_run >= LEAST_COUNT_PER_RUN;
    let note = format!("{} rise by {} a run", measure.words(), plain(trend.per_run));
    let mut found = finding(record, measure, Outcome::Leak, Some(note));
    found.evidence.count_per_run = Some(trend.per_run);
    leaks.then_some(found)
}

/// The runs the verdict is reached by, the confirmation left out.
pub fn asked<'a>(record: &MemoryRecord, column: &'a [u64]) -> &'a [u64] {
    &column[..column.len().min(record.asked_runs)]
}

/// A run that broke an invariant or was cut short passes nothing, and of fewer runs than were asked for nothing is called a
/// leak: a warm-up looks like one.
fn at_best(record: &MemoryRecord, row: Finding) -> Finding {
    if let Some(reason) = record.invalid.first() {
        return Finding { outcome: Outcome::Invalid, note: Some(reason.clone()), may_be_cache: false, ..row };
    }
    let runs = record.runs.len();
    let whole = runs >= record.asked_runs;
    if record.partial && (!whole || row.outcome.severity() <= Outcome::Partial.severity()) {
        let wanted = if whole && needs_confirmation(record) { 2 * record.asked_runs } else { record.asked_runs };
        let until_then = match (row.outcome, row.note) {
            (Outcome::Leak, Some(note)) => format!("; until then {note}"),
            _ => String::new(),
        };
        let note = format!("the memory phase ended after {runs} of {wanted} runs{until_then}");
        return Finding { outcome: Outcome::Partial, note: Some(note), ..row };
    }
    row
}

fn finding(record: &MemoryRecord, measure: MemoryMeasure, outcome: Outcome, note: Option<String>) -> Finding {
    let evidence = MemoryEvidence {
        measure,
        runs: Some(record.runs.len()),
        slope_bytes: None,
        count_per_run: None,
        floor_bytes: None,
        p_rising: None,
        smallest_leak_bytes: None,
        kept_bytes: None,
    };
    Finding { outcome, evidence, may_be_cache: false, note }
}

fn too_few(record: &MemoryRecord, measure: MemoryMeasure) -> Finding {
    let note = format!("{} runs are too few for a verdict on leaks; it takes at least {MIN_RUNS}", record.runs.len());
    finding(record, measure, Outcome::Inconclusive, Some(note))
}

/// `1 allocation`, `2.5 allocations`.
pub fn allocations(count: f64) -> String {
    let count = plain(count);
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} allocation{plural}")
}

/// To one decimal, which is left out where it is 0; what is smaller, to two.
fn plain(number: f64) -> String {
    if number > 0.0 && number < 0.1 {
        return format!("{number:.2}");
    }
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// Whether it rises evenly from the first run on, `then` as `before`.
fn is_even(before: f64, then: f64) -> bool {
    (EVEN..=1.0 / EVEN).contains(&(then / before))
}

/// Why a measure that rose is not decided.
fn not_confirmed(runs: usize) -> String {
    format!("{runs} more runs, which would tell a leak from a filling cache, are missing: measure again")
}

fn heap_finding(record: &MemoryRecord) -> Finding {
    let live_bytes = asked(record, &record.runs.live_bytes);
    if live_bytes.is_empty() && !record.runs.is_empty() {
        let note = match record.case {
            Case::Bench(_) => "the heap is not counted: the program is followed from outside, by its resident memory",
            _ => "the heap is not counted, since infergate's CountingAllocator is not in the process",
        };
        return finding(record, MemoryMeasure::Heap, unseen(record), Some(note.into()));
    }
    let Some(rises) = heap_rises(live_bytes) else { return too_few(record, MemoryMeasure::Heap) };
    let mut still = finding(record, MemoryMeasure::Heap, Outcome::Pass, None);
    (still.evidence.slope_bytes, still.evidence.smallest_leak_bytes) = (Some(0.0), Some(1.0));
    match confirmed_heap(record) {
        Some(heap) => risen(record, &heap, still),
        None if rises => {
            let note = format!("the heap rose in {} runs; {}", live_bytes.len(), not_confirmed(live_bytes.len()));
            finding(record, MemoryMeasure::Heap, Outcome::Inconclusive, Some(note))
        }
        None => still,
    }
}

/// What the runs that confirm made of a heap that rose; `found` is that of one that stood still.
fn risen(record: &MemoryRecord, heap: &HeapTrend, mut found: Finding) -> Finding {
    let (before, then, last) = (size(heap.first_per_run), size(heap.per_run), size(heap.last_per_run));
    let kept = size(heap.kept as f64);
    let is_in_steps = heap.rises < FEWEST_OF_A_TREND;
    let plural = if heap.rises == 1 { "" } else { "s" };
    let in_steps =
        format!("the heap grew by {kept} in {} step{plural}, the last in run {}", heap.rises, heap.last_rise_run);
    let stopped = heap.last_per_run == 0.0;
    let (outcome, note) = match heap.growth {
        HeapGrowth::CameBack => return found,
        HeapGrowth::Leak => {
            let blocks = heap_trend(&record.runs.live_blocks, record.asked_runs).map(|blocks| blocks.per_run);
            let blocks = blocks.map_or_else(String::new, |blocks| format!(" in {}", allocations(blocks)));
            found.may_be_cache = is_even(heap.first_per_run, heap.per_run);
            (Outcome::Leak, format!("the heap grows by {then} a run{blocks}"))
        }
        HeapGrowth::Plateau => {
            found.evidence.kept_bytes = Some(heap.kept);
            let note = if !stopped && heap.last_per_run >= heap.first_per_run {
                format!("{in_steps}; a leak is not excluded")
            } else if is_in_steps {
                in_steps
            } else if stopped {
                format!("the heap grew by {kept} and then no more")
            } else {
                format!("the heap grew by {kept} and slowed down to {last} a run: a smaller leak would not be seen")
            };
            (Outcome::Plateau, note)
        }
        HeapGrowth::Open => {
            let grew = if is_in_steps { in_steps } else { format!("the heap grew by {before} a run, then by {then}") };
            let settles = may_settle(Some(4 * record.asked_runs));
            (Outcome::Inconclusive, format!("{grew}: a leak is neither shown nor excluded; {settles}"))
        }
    };
    let has_ended = outcome == Outcome::Plateau && stopped;
    found.evidence.slope_bytes = Some(if has_ended { 0.0 } else { heap.per_run });
    // What still grows hides a leak that is smaller.
    if outcome != Outcome::Leak {
        found.evidence.smallest_leak_bytes = Some(heap.last_per_run.max(1.0));
    }
    Finding { outcome, note: Some(note), ..found }
}

/// One measure that sees nothing is an advisory; with two nothing is seen at all.
fn unseen(record: &MemoryRecord) -> Outcome {
    let seen = [&record.runs.live_bytes, &record.runs.rss_bytes].iter().any(|column| !column.is_empty());
    if seen { Outcome::Advisory } else { Outcome::Inconclusive }
}

fn resident_finding(record: &MemoryRecord) -> Finding {
    let rss_bytes = asked(record, &record.runs.rss_bytes);
    if rss_bytes.is_empty() && !record.runs.is_empty() {
        let note = "this system does not say the resident set: what grows outside the heap is not seen";
        return finding(record, MemoryMeasure::Resident, unseen(record), Some(note.into()));
    }
    let Some(first) = resident_trend(rss_bytes) else { return too_few(record, MemoryMeasure::Resident) };
    let unrisen = finding(record, MemoryMeasure::Resident, Outcome::Pass, None);
    let mut found = if first.rises() { confirmed(record, &first) } else { unrisen };
    let kept = growth_bytes(&record.runs.rss_bytes).map(|bytes| bytes.max(0.0) as u64);
    found.evidence = MemoryEvidence {
        slope_bytes: Some(first.slope),
        floor_bytes: Some(first.floor_bytes / first.runs as f64),
        p_rising: Some(first.p_rising),
        smallest_leak_bytes: Some(first.smallest_leak_bytes(first.runs)),
        kept_bytes: kept.filter(|_| found.outcome == Outcome::Plateau),
        ..found.evidence
    };
    found
}

/// `400 runs may decide it`; no phase is longer than [`MAX_MEMORY_RUNS`].
fn may_settle(runs: Option<usize>) -> String {
    match runs.filter(|runs| *runs <= MAX_MEMORY_RUNS) {
        Some(runs) => format!("{runs} runs may decide it"),
        None => format!("no phase of at most {MAX_MEMORY_RUNS} runs would decide it here"),
    }
}

/// What as many runs again say of a resident set that rose.
fn confirmed(record: &MemoryRecord, first: &ResidentTrend) -> Finding {
    let slope = first.slope;
    let found = |outcome, note| finding(record, MemoryMeasure::Resident, outcome, Some(note));
    let rose = format!("the resident set rose by {} a run over {} runs", size(slope), first.runs);
    let Some(second) = resident_trend(record.runs.rss_bytes.get(first.runs..).unwrap_or_default()) else {
        return found(Outcome::Inconclusive, format!("{rose}; {}", not_confirmed(first.runs)));
    };
    let (again, lasts) = (size(second.slope), second.slope >= slope / 2.0);
    // Two steps alone, one in each half, are no trend.
    let is_steady = second.both_halves_rise || rises_in_each_quarter(&record.runs.rss_bytes);
    match (second.rises(), lasts && is_steady) {
        (true, true) => Finding {
            may_be_cache: is_even(slope, second.slope),
            ..found(Outcome::Leak, format!("{rose}, and by {again} in as many further runs"))
        },
        (false, false) => found(Outcome::Plateau, format!("{rose}, and by {again} in as many further runs")),
        _ => {
            // One that slowed down needs runs in which the slower part is most of it.
            let settles = if lasts && !second.rises() { second.runs_to_settle() } else { Some(4 * first.runs) };
            let settles = may_settle(settles);
            let note = format!("{rose}, then by {again}: a leak is neither shown nor excluded; {settles}");
            found(Outcome::Inconclusive, note)
        }
    }
}
