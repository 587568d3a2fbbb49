//! The phase, driven from outside the measured process: records of a thousand runs would be memory of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow};

use super::leak::{HeapGrowth, confirmed_heap, needs_confirmation};
use crate::case::{Case, Phase, choose};
use crate::engine::LoadRequest;
use crate::progress::Progress;
use crate::receipt::{
    CountedCase, Counter, LIVE_BYTES_AT_REST, LoadMemory, MEMORY_SCHEMA, MemoryReceipt, MemoryRecord, MemorySeries,
    PEAK_LIVE_BYTES_LOADING, SYSTEM_COUNTERS, timestamp,
};
use crate::worker::{Client, Hello, MemoryState, Program, Timeouts, WorkerError, ensure_not};

/// Runs before the first one that counts: pools start, buffers find their size.
const WARM_UP_RUNS: usize = 5;
/// Repeats of a counted case. A thread that frees a little late shifts a counter in some of them; with few, two builds that do
/// the same would now and then show a range each that do not meet.
const COUNT_REPEATS: usize = 8;
/// Runs of the pass that looks for a leak's place, at least.
const LOCATE_RUNS: usize = 8;
/// A leak that is seldom is waited for until it came so often.
const LOCATED_RISES: f64 = 3.0;
/// Runs between two times that what there is so far is handed out to be kept.
const RUNS_BETWEEN_KEEPS: usize = 10;

/// What to follow, with what.
#[derive(Debug, Clone)]
pub struct MemoryRequest {
    /// The bench binary, best one that counts its heap.
    pub worker: Program,
    /// The model.
    pub load: LoadRequest,
    /// Case ids or globs to count; empty is the gate's suite.
    pub counted: Vec<String>,
    /// The generation to repeat.
    pub case: Case,
    /// How often; 0 counts and loads only.
    pub runs: usize,
    /// Text that prompts are cut from; `None` is the built-in one.
    pub prompt_text: Option<String>,
    /// How long its answers may take.
    pub timeouts: Timeouts,
}

/// Runs the phase: the leak rule says after the runs asked for what else is needed. `keep` gets what there is so far now and then,
/// as a partial receipt. When `cancelled` becomes true, or the worker ends or fails during the runs, a partial receipt comes
/// back.
///
/// # Errors
/// When nothing can be followed: a case beyond the context, a model that does not load, a worker that dies before the runs.
#[inline]
pub fn run(
    request: &MemoryRequest,
    keep: &mut dyn FnMut(&MemoryReceipt),
    progress: &mut dyn FnMut(&Progress),
    cancelled: &AtomicBool,
) -> Result<MemoryReceipt, WorkerError> {
    let show = &mut |label: &str, done_steps: usize| {
        progress(&Progress { label: label.into(), done_steps, total_steps: WARM_UP_RUNS + request.runs.max(1) });
    };
    show("memory, loading", 0);
    let file = request.worker.open()?;
    let (mut client, hello) = Client::spawn(&file, &request.load, request.timeouts.clone(), cancelled)?;
    let mut receipt = load(request, &mut client, hello)?;
    let outcome = count(request, &mut client, &mut receipt, show, cancelled)
        .and_then(|()| follow(request, &mut client, &mut receipt, keep, show, cancelled));
    let memory = &mut receipt.memory;
    memory.partial = outcome.is_err() || cancelled.load(Ordering::Relaxed);
    match outcome {
        Ok(()) | Err(WorkerError::Interrupted(_)) => {}
        Err(WorkerError::Invalid(broken)) => memory.invalid.push(broken),
        Err(_) if cancelled.load(Ordering::Relaxed) => {}
        Err(error) if memory.runs.is_empty() => return Err(error),
        // It ran for a while, and how it ended is why nothing is judged.
        Err(error) => memory.invalid.push(format!("{error:#}")),
    }
    Ok(receipt)
}

#[inline]
fn load(request: &MemoryRequest, client: &mut Client, hello: Hello) -> Result<MemoryReceipt, WorkerError> {
    let before = client.memory(None)?;
    let loaded = client.load(&request.load, request.prompt_text.as_deref())?;
    let after = client.memory(None)?;
    Ok(MemoryReceipt {
        schema: MEMORY_SCHEMA.into(),
        created: timestamp(),
        tool: hello.tool,
        machine: hello.machine.with_devices(loaded.devices),
        build: hello.build,
        engine: loaded.engine,
        threads: request.load.threads,
        seed: request.load.seed,
        counted: Vec::new(),
        held: BTreeMap::new(),
        memory: MemoryRecord {
            partial: true,
            invalid: Vec::new(),
            missing: after.missing,
            load: LoadMemory {
                before: before.sample,
                after: after.sample,
                peak_rss_bytes: after.peak_rss_bytes,
                peak_live_bytes: after.peak_live_bytes,
            },
            inference: None,
            case: request.case,
            warm_up_runs: WARM_UP_RUNS,
            asked_runs: request.runs,
            runs: MemorySeries::default(),
            sites: Vec::new(),
        },
    })
}

/// Exact counters of each case, where the worker counts.
#[inline]
fn count(
    request: &MemoryRequest,
    client: &mut Client,
    receipt: &mut MemoryReceipt,
    show: &mut dyn FnMut(&str, usize),
    cancelled: &AtomicBool,
) -> Result<(), WorkerError> {
    if request.runs > 0 {
        let mend = "memory.case cannot be repeated; name a shorter one, or set memory.runs to 0";
        request.case.ensure_fits(receipt.engine.context_tokens).context(mend)?;
    }
    if receipt.memory.load.after.live_bytes.is_none() {
        return Ok(());
    }
    let cases = choose(&request.counted, receipt.engine.context_tokens)?;
    // Of benches nothing is loaded but their names.
    let has_model = cases.iter().any(|case| case.phase() != Phase::Bench);
    for case in cases {
        ensure_not(cancelled)?;
        show(&format!("memory, counting: {case}"), 0);
        let prepared = client.prepare(case, None).map_err(|error| error.about(case))?;
        let counted: CountedCase = client.count(case, COUNT_REPEATS).map_err(|error| error.about(case))?;
        if counted.output_sha256 != prepared.output.sha256 {
            let text = format!("{case}: the counted run said something else than the prepared one");
            return Err(WorkerError::Invalid(text));
        }
        receipt.counted.push(counted);
    }
    if has_model {
        receipt.held = held(&receipt.memory.load, &client.memory(None)?);
    }
    Ok(())
}

/// What the model holds, above what there was before it was loaded: a second copy of its weights, or a buffer kept from call to call.
fn held(load: &LoadMemory, at_rest: &MemoryState) -> BTreeMap<String, Counter> {
    let LoadMemory { before, after, .. } = load;
    let [loaded, resting, peak] = SYSTEM_COUNTERS;
    let counters = [
        ("live_bytes_loaded", before.live_bytes, after.live_bytes),
        (PEAK_LIVE_BYTES_LOADING, before.live_bytes, load.peak_live_bytes),
        (LIVE_BYTES_AT_REST, before.live_bytes, at_rest.sample.live_bytes),
        (loaded, before.anonymous_bytes, after.anonymous_bytes),
        (resting, before.anonymous_bytes, at_rest.sample.anonymous_bytes),
        (peak, before.rss_bytes, at_rest.peak_rss_bytes),
    ];
    let above = |(name, before, then): (&str, Option<u64>, Option<u64>)| {
        let bytes = then?.saturating_sub(before?);
        Some((name.to_owned(), Counter { min: bytes, max: bytes }))
    };
    counters.into_iter().filter_map(above).collect()
}

/// One generation, then many.
#[inline]
fn follow(
    request: &MemoryRequest,
    client: &mut Client,
    receipt: &mut MemoryReceipt,
    keep: &mut dyn FnMut(&MemoryReceipt),
    show: &mut dyn FnMut(&str, usize),
    cancelled: &AtomicBool,
) -> Result<(), WorkerError> {
    if request.runs == 0 {
        return Ok(());
    }
    client.prepare(request.case, None)?;
    receipt.memory.inference = Some(client.inference(request.case)?);
    for run in 0..WARM_UP_RUNS {
        show("memory, warming up", run);
        client.memory(Some(request.case))?;
    }
    let mut wanted = request.runs;
    loop {
        while receipt.memory.runs.len() < wanted {
            let run = receipt.memory.runs.len();
            ensure_not(cancelled)?;
            show(&format!("memory, {wanted} runs: {run} done"), WARM_UP_RUNS + run.min(request.runs));
            let state = client.memory(Some(request.case))?;
            receipt.memory.runs.push(&state.sample).map_err(|lost| {
                anyhow!(
                    "after run {} this is no longer known: {lost}; look for what the process runs out of, such as file descriptors",
                    run + 1
                )
            })?;
            if receipt.memory.runs.is_empty() {
                return Err(WorkerError::Failed(anyhow!(
                    "neither the heap nor the resident set is known; install infergate's CountingAllocator in the worker"
                )));
            }
            if (run + 1) % RUNS_BETWEEN_KEEPS == 0 {
                keep(receipt);
            }
        }
        if wanted > request.runs || !needs_confirmation(&receipt.memory) {
            break;
        }
        wanted *= 2;
    }
    // After the runs that confirm: what outlives its run now is what goes on growing, and a cache that filled is not named.
    if let Some(heap) = confirmed_heap(&receipt.memory).filter(|heap| heap.growth == HeapGrowth::Leak) {
        show("memory, looking for the leak's place", WARM_UP_RUNS + request.runs);
        let runs = ((LOCATED_RISES * heap.runs_between_rises) as usize).max(LOCATE_RUNS);
        // The leak is shown already; that its place is not found takes nothing from it.
        match client.locate(request.case, runs) {
            Ok(sites) => receipt.memory.sites = sites,
            Err(error) => receipt.memory.missing.push(format!("the leak's place was not found: {error:#}")),
        }
    }
    Ok(())
}
