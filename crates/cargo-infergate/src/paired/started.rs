//! A process of each side before the first block.

use std::time::{Duration, Instant};

use super::PairedRequest;
use infergate_build::progress;
use infergate_core::case::{Case, choose_benches};
use infergate_core::relay::missing_file;
use infergate_core::worker::{Client, Timeouts, WorkerError, WorkerFile};
use infergate_receipts::{Machine, Side, SideRecord};

/// The time limit of a bench's first run, or a fifth of the budget if that is shorter.
const FIRST_OF_BENCH: Duration = Duration::from_secs(120);
/// The shortest time limit of a first run, whatever the budget.
const LEAST_OF_BENCH: Duration = Duration::from_secs(10);

/// A process that has loaded.
pub struct Started {
    pub client: Client<'static>,
    pub file: WorkerFile,
    pub record: SideRecord,
    pub machine: Machine,
    /// How long its start took, nanoseconds, by this process's clock: a worker may report anything.
    pub start_ns: u64,
    /// Its cases, if it has criterion or divan benches; else empty.
    pub benches: Vec<Case>,
}

/// Starts a process of a side, and lets it load.
///
/// # Errors
/// A failed run if head cannot do it, not comparable if base alone refuses.
pub fn start(request: &PairedRequest, side: Side) -> Result<Started, WorkerError> {
    progress::ensure_not_cancelled()?;
    let name = side.name();
    let program = if side == Side::Base { &request.base } else { &request.head };
    let file = program.open().map_err(|error| error.of(name))?;
    let known = Timeouts::default();
    let first_of_bench =
        request.budget.map_or(FIRST_OF_BENCH, |budget| (budget / 5).clamp(LEAST_OF_BENCH, FIRST_OF_BENCH));
    let timeouts = Timeouts {
        first_of_bench: request.is_of_bench_target().then_some(first_of_bench),
        first_of_case: request.budget.map(|budget| budget.max(LEAST_OF_BENCH)),
        least_load: request.ready_within.unwrap_or(known.least_load),
        ..known
    };
    let begun = Instant::now();
    let spawned = Client::spawn(&file, &request.load, timeouts, progress::cancelled());
    let (mut client, hello) = spawned.map_err(|error| match error {
        WorkerError::Unusable(why) | WorkerError::Refused(why) if side == Side::Base => {
            let remedy = "from a revision whose bench target calls infergate::bench::main";
            WorkerError::NotComparable(format!("base does not speak the worker protocol ({why}); build base {remedy}"))
        }
        error => error.of(name),
    })?;
    let loaded = client.load(&request.load_in(None), request.prompt_text.as_deref()).map_err(|error| match side {
        Side::Base => base_cannot(error, &format!("load {}", request.load.model)),
        Side::Head => error.of("head"),
    })?;
    let start_ns = begun.elapsed().as_nanos() as u64;
    let record = SideRecord { tool: hello.tool, build: hello.build, engine: loaded.engine, ..SideRecord::default() };
    let machine = hello.machine.with_devices(loaded.devices);
    Ok(Started { client, file, record, machine, start_ns, benches: loaded.benches })
}

/// The error of what base cannot do and head can: a refusal is not comparable, anything else a failed run.
pub fn base_cannot(error: WorkerError, what: &str) -> WorkerError {
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

/// Why head does not have the requested cases: a bench that base alone has cannot be compared.
pub fn head_lacks_bench(request: &PairedRequest, head: &[Case], base: &[Case], error: anyhow::Error) -> WorkerError {
    let is_of_base_alone = |name: &&String| {
        let is_in = |benches: &[Case]| choose_benches(std::slice::from_ref(*name), benches).is_ok();
        is_in(base) && !is_in(head)
    };
    match request.cases.iter().find(is_of_base_alone) {
        Some(name) => {
            WorkerError::NotComparable(format!("head has no bench '{name}' any more; leave it out of --cases"))
        }
        None => error.into(),
    }
}
