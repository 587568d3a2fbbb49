//! A process of each side before the first block.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{PairedRequest, Program};
use infergate_core::case::Case;
use infergate_core::relay::missing_file;
use infergate_core::worker::{Client, Patience, PreparedReply, WorkerError, WorkerFile, ensure_not};
use infergate_receipts::{Machine, Side, SideRecord};

/// A bench that was never run may take so long, or a fifth of the budget, and never less than the least.
const FIRST_OF_BENCH: Duration = Duration::from_secs(120);
const LEAST_OF_BENCH: Duration = Duration::from_secs(10);

/// What earlier attempts at the same benches showed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Before {
    /// So many hung, and were left out.
    pub hung: usize,
    /// The longest that one took which did not.
    pub longest: Duration,
}

/// A process that has loaded.
pub struct Started<'a> {
    pub client: Client<'a>,
    pub file: WorkerFile,
    pub record: SideRecord,
    /// How long it was waited for, nanoseconds: a worker may say anything.
    pub start_ns: u64,
    /// The only cases there are, where they are criterion benches.
    pub benches: Vec<Case>,
    pub outputs: Vec<PreparedReply>,
}

/// Starts a process of a side, and lets it load.
///
/// # Errors
/// What head cannot do is a failed run, what only base cannot do is not comparable.
pub fn start<'a>(
    request: &PairedRequest,
    side: Side,
    before: Before,
    cancelled: &'a AtomicBool,
) -> Result<(Started<'a>, Machine), WorkerError> {
    ensure_not(cancelled)?;
    let name = side.name();
    let program = if side == Side::Base { &request.base } else { &request.head };
    let file = program.open().map_err(|error| error.of(name))?;
    let patience = Patience::default()
        .with_first_of_bench(first_of_bench(request, program, before))
        .with_first_of_case(request.budget.map(|budget| budget.max(LEAST_OF_BENCH)));
    let patience = match request.ready_within {
        Some(within) => patience.with_least_load(within),
        None => patience,
    };
    let begun = Instant::now();
    let spawned = Client::spawn(&file, &request.load, patience, cancelled);
    let (mut client, hello) = spawned.map_err(|error| match error {
        WorkerError::Died(why) | WorkerError::Protocol(why) | WorkerError::Hung(why) | WorkerError::Refused(why)
            if side == Side::Base =>
        {
            let remedy = "from a revision whose bench target calls infergate::bench::main";
            WorkerError::NotComparable(format!("base does not speak the worker protocol ({why}); build base {remedy}"))
        }
        error => error.of(name),
    })?;
    let loaded = client.load(&request.load_in(None), request.prompt_text.as_deref()).map_err(|error| match side {
        Side::Base => only_in_head(error, &format!("load {}", request.load.model)),
        Side::Head => error.of("head"),
    })?;
    let start_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (tool, build) = (hello.tool, hello.build);
    let record = SideRecord {
        tool,
        build,
        engine: loaded.engine,
        counted: Vec::new(),
        held: std::collections::BTreeMap::new(),
        unmatched: Vec::new(),
    };
    Ok((
        Started { client, file, record, start_ns, benches: loaded.benches, outputs: Vec::new() },
        hello.machine.with_devices(loaded.devices),
    ))
}

/// How long a bench may take that was never run: after each that hung half as long, so that some of them do not take the whole budget, and
/// twice what others took. What is started behind a launcher may start something of its own first.
fn first_of_bench(request: &PairedRequest, program: &Program, before: Before) -> Option<Duration> {
    let is_bench = program.launcher.is_none() && program.servers.is_empty();
    let first = request.budget.map_or(FIRST_OF_BENCH, |budget| (budget / 5).min(FIRST_OF_BENCH));
    let first = first.max(LEAST_OF_BENCH);
    let left = (first / 2_u32.pow(before.hung.min(8) as u32)).max(LEAST_OF_BENCH);
    is_bench.then(|| left.max(2 * before.longest).min(first))
}

/// What only base refuses cannot be compared; what breaks is a failed run on every side.
pub fn only_in_head(error: WorkerError, what: &str) -> WorkerError {
    match error {
        WorkerError::Refused(why) => {
            let missing = missing_file(&why).map(|remedy| format!("; {remedy}")).unwrap_or_default();
            WorkerError::NotComparable(format!(
                "base cannot {what}: {why}; choose what both can run, or another base{missing}"
            ))
        }
        error => error.of("base"),
    }
}

/// Where base has a bench that was asked for by its name, and head has none: what cannot be compared.
pub fn only_in_base(request: &PairedRequest, in_head: &[Case], cancelled: &AtomicBool) -> Option<WorkerError> {
    if in_head.is_empty() {
        return None;
    }
    let (base, _) = start(request, Side::Base, Before::default(), cancelled).ok()?;
    let gone = |name: &&String| {
        let is_it = |bench: &&Case| bench.to_string() == **name || bench.id() == **name;
        base.benches.iter().any(|bench| is_it(&bench)) && !in_head.iter().any(|bench| is_it(&bench))
    };
    let name = request.cases.iter().find(gone)?;
    Some(WorkerError::NotComparable(format!("head has no bench '{name}' any more; leave it out of --cases")))
}

/// Why head has no room for the suite: says so where base's context is longer.
pub fn shorter_context(
    request: &PairedRequest,
    context_tokens: usize,
    error: anyhow::Error,
    cancelled: &AtomicBool,
) -> anyhow::Error {
    let base = start(request, Side::Base, Before::default(), cancelled);
    let was = base.map_or(0, |(base, _)| base.record.engine.context_tokens);
    if was <= context_tokens {
        return error;
    }
    anyhow::anyhow!(
        "head: its context has {context_tokens} tokens and base's {was}, so it cannot run what base can: {error}"
    )
}
