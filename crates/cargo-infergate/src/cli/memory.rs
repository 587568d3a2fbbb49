//! `memory`: repeats one case in one process (100 times by default) and reports leaks.

mod looks;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, Args};
use infergate_build::{bench_target, output, progress};
use infergate_core::case::{Case, Phase};
use infergate_core::memory::{self, MemoryRequest};
use infergate_core::worker::{Timeouts, WorkerError};

use self::looks::look_again;
use super::flags::{Workers, flags_of_keys};
use super::machine_lock::{self, Wait};
use super::outputs::Kept;
use super::{outputs, pages, preflight};
use crate::config::{self, Config};
use crate::paired::Program;
use infergate_judge::memory::judge;
use infergate_receipts::{
    CountedCase, MemoryReceipt, PairedReceipt, Receipt, SYSTEM_COUNTERS, Side, SideRecord, Verdict,
};
use infergate_report::inputs::Inputs;
use infergate_report::terminal;

/// Follow memory over many runs and find leaks
#[derive(Args)]
#[command(args = keys())]
#[command(after_help = "Examples:\n  cargo xtask memory\n  cargo xtask memory --model model.gguf --runs 200")]
pub struct Memory {
    /// Where the receipt goes [default: target/infergate/memory.json]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write the verdict here; - is stdout, which then has nothing else
    #[arg(long)]
    json: Option<PathBuf>,
    #[command(flatten)]
    wait: Wait,
    /// Memory bench binary that was built already
    #[arg(long, help_heading = "Memory phase")]
    worker: Option<PathBuf>,
}

fn keys() -> impl Iterator<Item = Arg> {
    let short = |arg: Arg| {
        let long = arg.get_long().unwrap_or_default().to_owned();
        arg.long(long.trim_start_matches("memory-").to_owned()).alias(long)
    };
    let memory = flags_of_keys::<config::MemoryKeys>().into_iter().map(short);
    let build = flags_of_keys::<config::BenchKeys>().into_iter().filter(|arg| arg.get_id() != "bench.target");
    memory.chain(flags_of_keys::<config::WorkloadKeys>()).chain(build)
}

/// Follows, judges, prints.
pub fn run(options: &Memory, config: &Config) -> Result<i32> {
    let out = options.out.clone().unwrap_or_else(|| config.measured.target_folder().join("memory.json"));
    outputs::remove_previous(&out)?;
    preflight::check(config)?;
    let _lock = machine_lock::take(&options.wait)?;
    let worker = match bench_target::memory_worker(&config.build_request(), options.worker.clone())? {
        Some(worker) => worker,
        // A timed worker does not count its heap, but its resident set shows leaks, too.
        None => bench_target::worker(&config.build_request(), None)?,
    };
    let receipt = follow(config, worker, &config.measured.cases, config.measured.memory.runs, Some(&out))?;
    let verdict = Verdict::of(judge(&receipt.memory), Vec::new());
    let inputs = Inputs { memory: Some(receipt.clone()), verdict: Some(verdict), ..pages::inputs() };
    output::print_verdict(&terminal::report(&inputs));
    outputs::receipt(&out, &receipt, receipt.memory.partial);
    Ok(pages::conclude(&inputs, options.json.as_deref(), None))
}

/// Program whose memory is followed.
pub struct Follower {
    pub program: Program,
    /// It is the timed program, which counts nothing, because no bench target counts.
    pub is_timed: bool,
}

impl Follower {
    /// A program that is not timed.
    pub fn counting(program: Program) -> Self {
        Self { program, is_timed: false }
    }

    /// The program that counts. If there is none and `runs` are to be followed, `timed`: its resident set shows leaks, too.
    pub fn or_timed(counting: Option<Program>, timed: &Program, runs: usize) -> Option<Self> {
        let timed = || (runs > 0).then(|| Self { program: timed.clone(), is_timed: true });
        counting.map(Self::counting).or_else(timed)
    }
}

/// The worker of the memory phase: given, or built, or `timed` if there is no such bench target. With --worker alone there is no memory
/// worker.
///
/// # Errors
/// As [`bench_target::Source::build`].
pub fn worker(config: &Config, given: &Workers, timed: &Program, runs: usize) -> Result<Option<Follower>> {
    if given.memory_worker.is_none() && given.worker.is_some() {
        output::status("no counters and no memory phase: give --memory-worker in addition to --worker");
        return Ok(None);
    }
    Ok(Follower::or_timed(
        bench_target::memory_worker(&config.build_request(), given.memory_worker.clone())?,
        timed,
        runs,
    ))
}

/// Counts the cases of `receipt` and follows `runs` runs, and adds both to it.
///
/// # Errors
/// As [`follow`].
pub fn attach(config: &Config, worker: Follower, runs: usize, receipt: &mut Receipt) -> Result<()> {
    let cases: Vec<Case> = receipt.cases.iter().map(|case| case.id).collect();
    if cases.is_empty() {
        return Ok(());
    }
    let Some(phase) = follow_judged(config, worker, &cases, runs, receipt.engine.context_tokens)? else {
        return Ok(());
    };
    for counted in phase.counted {
        let id = counted.id;
        let Some(case) = receipt.cases.iter_mut().find(|case| case.id == id) else { continue };
        if case.output.sha256 != counted.output_sha256 {
            receipt.invalid.push(format!("{id}: {OTHER_OUTPUT}"));
        }
        case.counters = counted.counters;
    }
    // Pages vary from day to day: only paired runs compare them, which measure both sides again.
    receipt.held = phase.held.into_iter().filter(|(name, _)| !SYSTEM_COUNTERS.contains(&name.as_str())).collect();
    if runs > 0 {
        receipt.memory = Some(phase.memory);
    } else {
        receipt.partial |= phase.memory.partial;
        receipt.invalid.extend(phase.memory.invalid);
    }
    Ok(())
}

/// Counts the cases of a paired run on both sides, and follows `runs` runs of head. A base that cannot be counted is not compared; a head
/// that is not counted where base is does not pass.
///
/// # Errors
/// As [`follow`], of head.
pub fn attach_to_pair(
    config: &Config,
    base: Option<Program>,
    head: Option<Follower>,
    runs: usize,
    receipt: &mut PairedReceipt,
) -> Result<()> {
    let cases: Vec<Case> = receipt.cases.iter().map(|case| case.id).collect();
    // A shard without cases: an empty list of names would mean the whole suite.
    if cases.is_empty() {
        return Ok(());
    }
    let names = names(&cases);
    let count = |program: &Program| follow(config, program.clone(), &names, 0, None);
    if let Some(base) = &base {
        match count(base) {
            Ok(phase) => {
                add_faults(receipt, Side::Base, &phase);
                ensure_same_output(receipt, Side::Base, &phase.counted);
                (receipt.base.counted, receipt.base.held) = (phase.counted, phase.held);
            }
            Err(error) => output::warn("base is not counted", &error),
        }
    }
    let Some(head) = head else { return Ok(()) };
    let head_program = head.program.clone();
    let Some(phase) = follow_judged(config, head, &cases, runs, receipt.head.engine.context_tokens)? else {
        return Ok(());
    };
    ensure_same_output(receipt, Side::Head, &phase.counted);
    if runs == 0 {
        add_faults(receipt, Side::Head, &phase);
    }
    (receipt.head.counted, receipt.head.held) = (phase.counted, phase.held);
    receipt.memory = (runs > 0).then_some(phase.memory);
    let Some(base) = base else { return Ok(()) };
    look_again(receipt, config.policy.counter_tolerance, |receipt, side| {
        let program = if side == Side::Base { &base } else { &head_program };
        let again = match count(program) {
            Ok(again) => again,
            // Times stay. A rise that is not confirmed or refuted does not pass.
            Err(error) => {
                output::warn(&format!("{} is not looked at again", side.name()), &error);
                receipt.partial = true;
                return None;
            }
        };
        add_faults(receipt, side, &again);
        let MemoryReceipt { counted, held, memory, .. } = again;
        (!memory.partial).then(|| SideRecord { counted, held, ..SideRecord::default() })
    });
    Ok(())
}

/// Adds why the counts of a side cannot be used, if its phase ended early or is invalid.
fn add_faults(receipt: &mut PairedReceipt, side: Side, phase: &MemoryReceipt) {
    receipt.partial |= phase.memory.partial;
    receipt.invalid.extend(phase.memory.invalid.iter().map(|reason| format!("{}: {reason}", side.name())));
}

/// Follows the program of a run that is judged. `None` if that is the timed program and it cannot be followed. Prints why, except for
/// benches, which have no generation to repeat.
fn follow_judged(
    config: &Config,
    worker: Follower,
    cases: &[Case],
    runs: usize,
    context_tokens: usize,
) -> Result<Option<MemoryReceipt>> {
    let is_timed = worker.is_timed;
    if is_timed {
        if cases.iter().all(|case| case.phase() == Phase::Bench) {
            return Ok(None);
        }
        output::status_escaped(
            "no bench target 'memory': allocations are not counted, leaks are looked for in the resident set",
        );
        if let Err(error) = config.measured.memory.case.ensure_fits(context_tokens) {
            output::warn("no leak is looked for: memory.case", &error);
            return Ok(None);
        }
    }
    match follow(config, worker.program, &names(cases), runs, None) {
        // A worker in another language need not have this capability.
        Err(error) if is_timed && matches!(WorkerError::find(&error), Some(WorkerError::Refused(_))) => {
            output::warn("no leak is looked for", &error);
            Ok(None)
        }
        phase => phase.map(Some),
    }
}

fn names(cases: &[Case]) -> Vec<String> {
    cases.iter().map(Case::to_string).collect()
}

/// Why counts cannot be used: they are of other work.
const OTHER_OUTPUT: &str = "the process that counts has another output than the one that is timed";

/// Notes where a side's process that counts has another output than the one that is timed.
pub fn ensure_same_output(receipt: &mut PairedReceipt, side: Side, counted: &[CountedCase]) {
    for counted in counted {
        let id = counted.id;
        if receipt.case(id).is_some_and(|timed| timed.output(side).sha256 != counted.output_sha256) {
            receipt.invalid.push(format!("{id}: {}: {OTHER_OUTPUT}", side.name()));
        }
    }
}

/// Runs the memory phase of `runs` runs, and keeps the receipt so far in `out`, if there is one.
///
/// # Errors
/// As [`memory::run`].
fn follow(
    config: &Config,
    worker: Program,
    counted: &[String],
    runs: usize,
    out: Option<&Path>,
) -> Result<MemoryReceipt> {
    let request = MemoryRequest {
        worker,
        load: config.measured.load_request(),
        counted: counted.to_vec(),
        case: config.measured.memory.case,
        runs,
        prompt_text: config.measured.own_prompt_text()?,
        timeouts: Timeouts { least_load: config.server.least_load(), ..Timeouts::default() },
    };
    let line = progress::Line::default();
    let kept = out.map(Kept::at);
    let mut keep = |so_far: &MemoryReceipt| kept.iter().for_each(|kept| kept.keep(so_far));
    let receipt = memory::run(&request, &mut keep, &mut |step| line.show(step), progress::cancelled());
    line.finish();
    Ok(receipt?)
}
