//! The worker's side: a prepared case run once more, and what the memory says afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::allocator::{Heap, heap, own_peak_bytes, reset_peak, uncounted_so_far};
use super::sites;
use crate::engine::{Engine, TokenId};
use crate::measure::{Prepared, output_ids};
use infergate_core::case::{Case, Phase};
use infergate_core::machine::system;
use infergate_core::memory::resident;
use infergate_core::receipt::{AllocationSite, CountedCase, InferenceMemory, LeakSite, MemorySample};
use infergate_core::worker::MemoryState;

/// A heap is still when so many looks at it, the processor offered to others in between, are the same.
const STILL_LOOKS: usize = 20;
/// Looks at a heap that is never still, because a thread of the engine's own goes on.
const MOST_LOOKS: usize = 1000;

/// Each tenth run asks the prompt whose output is known. What is kept for each new prompt shows in the others.
const RUNS_BETWEEN_KNOWN: u64 = 10;

/// One whole run of `prepared`, the `run`-th from 0. Each tenth asks its prompt, and the output is compared; the others ask a prompt
/// of the same length that no other run asks.
///
/// # Errors
/// When the engine fails, or says something else than when it was prepared.
pub fn run_once(engine: &mut dyn Engine, prepared: &Prepared, run: u64) -> Result<()> {
    let new = (run % RUNS_BETWEEN_KNOWN != 0).then(|| new_prompt(&prepared.prompt, run));
    let prompt = new.as_deref().unwrap_or(&prepared.prompt);
    let ids = output_ids(engine, prompt, prepared.case.output_tokens())?;
    if new.is_none() { prepared.ensure_same(&ids) } else { Ok(()) }
}

/// `prompt` with its first tokens exchanged for others that are in it, so that none is a special one: `run` in digits of as many
/// values as it has different tokens. A prompt that repeats one token stays what it is.
fn new_prompt(prompt: &[TokenId], run: u64) -> Vec<TokenId> {
    let mut known = prompt.to_vec();
    known.sort_unstable();
    known.dedup();
    let values = known.len() as u64;
    let mut left = run;
    let exchange = |id: &TokenId| {
        let at = known.partition_point(|other| other < id) as u64;
        let other = known[((at + left % values) % values) as usize];
        left /= values;
        other
    };
    prompt.iter().map(exchange).collect()
}

/// The memory now, and the peaks since this was asked last.
pub fn state() -> MemoryState {
    without_huge_pages();
    // Before anything else: reading the rest allocates.
    let heap = still_heap();
    return_freed_memory();
    let proc_self = Path::new(resident::SELF);
    let seen = resident::of_process(proc_self);
    let sample = MemorySample {
        live_bytes: heap.map(|heap| heap.live_bytes),
        live_blocks: heap.map(|heap| heap.live_blocks),
        rss_bytes: seen.rss_bytes.or_else(system::resident_set_bytes),
        ..seen
    };
    let peak_rss_bytes = resident::peak_rss_bytes(proc_self);
    let missing = resident::missing(&sample, peak_rss_bytes);
    let state = MemoryState { missing, sample, peak_live_bytes: heap.map(|heap| heap.peak_bytes), peak_rss_bytes };
    reset_peak();
    state
}

/// From now on this process gets pages of 4 KiB only: steps of 2 MiB hide a leak. Linux only.
fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    // SAFETY: only sets a flag of this process; a kernel that does not know it returns an error, which changes nothing.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Gives what was freed back to the system, which otherwise looks used.
fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointers; glibc locks what it needs.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Counts `repeats` runs of `prepared`; a counter that does not repeat is a range.
///
/// Before each the engine reads a single token, so that what a run leaves behind is its own sequence and not the last one's.
///
/// # Errors
/// As [`run_once`]; a worker that does not count.
pub fn count(engine: &mut dyn Engine, prepared: &Prepared, repeats: usize) -> Result<CountedCase> {
    let mut values: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for _ in 0..repeats.max(1) {
        for (name, value) in count_once(engine, prepared)? {
            values.entry(name.to_owned()).or_default().push(value);
        }
    }
    Ok(CountedCase::of_repeats(prepared.case, prepared.output.sha256.clone(), values))
}

fn count_once(engine: &mut dyn Engine, prepared: &Prepared) -> Result<Vec<(&'static str, u64)>> {
    engine.start(&prepared.prompt[..1])?;
    let steps = prepared.case.output_tokens() - 1;
    let mut ids = Vec::with_capacity(prepared.case.output_tokens());
    let empty = counted_heap()?;
    reset_peak();
    ids.push(engine.start(&prepared.prompt)?);
    let read = counted_heap()?;
    if prepared.case.phase() == Phase::Decode {
        reset_peak();
    }
    for _ in 0..steps {
        ids.push(engine.next()?);
    }
    let end = counted_heap()?;
    prepared.ensure_same(&ids)?;
    let allocations = |from: &Heap, to: &Heap| to.allocations - from.allocations;
    let bytes = |from: &Heap, to: &Heap| to.allocated_bytes - from.allocated_bytes;
    let per_token = |total: u64| total.div_ceil(steps.max(1) as u64);
    let before = if prepared.case.phase() == Phase::Decode { &read } else { &empty };
    let mut counters = vec![
        ("peak_live_bytes", end.peak_bytes.saturating_sub(before.live_bytes)),
        ("end_live_bytes", end.live_bytes.saturating_sub(empty.live_bytes)),
    ];
    match prepared.case {
        Case::Prefill { .. } => counters.extend([
            ("allocations_per_prefill", allocations(&empty, &end)),
            ("allocated_bytes_per_prefill", bytes(&empty, &end)),
        ]),
        Case::Decode { .. } | Case::Generate { .. } => counters.extend([
            ("allocations_per_token", per_token(allocations(&read, &end))),
            ("allocated_bytes_per_token", per_token(bytes(&read, &end))),
        ]),
        Case::Bench(_) => {}
    }
    // A token's share is rounded up, which hides what fewer allocations than tokens are.
    if let Case::Generate { .. } = prepared.case {
        counters.push(("allocations_per_generation", allocations(&read, &end)));
    }
    Ok(counters)
}

/// What one `iteration` of a bench allocates, of what [`uncounted`](super::uncounted) work does not. What is live at its end is that of
/// all of it: an input that was set up is dropped in the iteration, and an output of it outside.
///
/// # Errors
/// In a worker that does not count.
pub fn count_iteration(iteration: &mut dyn FnMut()) -> Result<Vec<(&'static str, u64)>> {
    let (before, left_out) = (counted_heap()?, uncounted_so_far());
    let peak_bytes = own_peak_bytes(iteration);
    let (after, all_left_out) = (counted_heap()?, uncounted_so_far());
    let own = |all: u64, left_out: u64| all.saturating_sub(left_out);
    Ok(vec![
        ("allocations_per_iteration", own(after.allocations - before.allocations, all_left_out.0 - left_out.0)),
        (
            "allocated_bytes_per_iteration",
            own(after.allocated_bytes - before.allocated_bytes, all_left_out.1 - left_out.1),
        ),
        ("peak_live_bytes", peak_bytes),
        ("end_live_bytes", after.live_bytes.saturating_sub(before.live_bytes)),
    ])
}

/// Where one `iteration` of a bench allocates, of what [`count_iteration`] counts.
///
/// # Errors
/// As [`count_iteration`].
pub fn allocations_of_iteration(iteration: &mut dyn FnMut()) -> Result<Vec<AllocationSite>> {
    counted_heap()?;
    sites::begin_run(0);
    iteration();
    Ok(sites::finish_counting(1))
}

/// The heap, once it is still: a pool's thread may free its job a moment after the job is done.
fn still_heap() -> Option<Heap> {
    let mut last = heap()?;
    let mut still = 0;
    for _ in 0..MOST_LOOKS {
        std::thread::yield_now();
        let now = heap()?;
        still = if now == last { still + 1 } else { 0 };
        last = now;
        if still == STILL_LOOKS {
            break;
        }
    }
    Some(last)
}

fn counted_heap() -> Result<Heap> {
    still_heap().context("this worker does not count its heap; install infergate's CountingAllocator in it")
}

/// What one generation takes. Without a counted heap only what the engine itself says.
///
/// # Errors
/// As [`run_once`].
pub fn inference(engine: &mut dyn Engine, prepared: &Prepared) -> Result<InferenceMemory> {
    let tokens = (prepared.case.prompt_tokens() + prepared.case.output_tokens() - 1) as f64;
    let cache_expected_bytes = engine.cost().map(|cost| (cost.decode_bytes_per_context_token * tokens) as u64);
    let live = || heap().map(|heap| heap.live_bytes);
    let alone = live();
    let sequence_bytes = engine.fork().ok().and_then(|fork| {
        let with_fork = live();
        drop(fork);
        with_fork?.checked_sub(alone?)
    });
    engine.start(&prepared.prompt[..1])?;
    let mut ids = Vec::with_capacity(prepared.case.output_tokens());
    let before = live();
    reset_peak();
    ids.push(engine.start(&prepared.prompt)?);
    let prefill_peak = heap().map(|heap| heap.peak_bytes);
    let read = live();
    while ids.len() < prepared.case.output_tokens() {
        ids.push(engine.next()?);
    }
    let end = live();
    prepared.ensure_same(&ids)?;
    let grown = |from: Option<u64>, to: Option<u64>| Some(to? as i64 - from? as i64);
    Ok(InferenceMemory {
        cache_expected_bytes,
        sequence_bytes,
        prefill_peak_bytes: prefill_peak.zip(before).map(|(peak, before)| peak.saturating_sub(before)),
        growth_bytes: grown(before, end),
        decode_growth_bytes: grown(read, end),
    })
}

/// Runs `prepared` another `runs` + 1 times with every call stack kept, and names the places of what outlives its run. `first_run` is
/// the first of them for [`run_once`].
///
/// # Errors
/// As [`run_once`].
pub fn locate(engine: &mut dyn Engine, prepared: &Prepared, first_run: u64, runs: usize) -> Result<Vec<LeakSite>> {
    let ran = (0..=runs).try_for_each(|run| {
        sites::begin_run(run);
        run_once(engine, prepared, first_run.saturating_add(run as u64))
    });
    let found = sites::finish(runs);
    ran.map(|()| found)
}

/// Where `prepared` allocates, of what [`count`] counts: of a prompt for prefill, else of a token. The numbers of all places together
/// are those of the counters.
///
/// # Errors
/// As [`count`].
pub fn allocations(engine: &mut dyn Engine, prepared: &Prepared) -> Result<Vec<AllocationSite>> {
    counted_heap()?;
    engine.start(&prepared.prompt[..1])?;
    let is_prefill = prepared.case.phase() == Phase::Prefill;
    let steps = prepared.case.output_tokens() - 1;
    let mut ids = Vec::with_capacity(prepared.case.output_tokens());
    if is_prefill {
        sites::begin_run(0);
    }
    ids.push(engine.start(&prepared.prompt)?);
    if !is_prefill {
        sites::begin_run(0);
    }
    let ran = (0..steps).try_for_each(|_| {
        ids.push(engine.next()?);
        anyhow::Ok(())
    });
    let found = sites::finish_counting(if is_prefill { 1 } else { steps.max(1) });
    ran?;
    prepared.ensure_same(&ids)?;
    Ok(found)
}
