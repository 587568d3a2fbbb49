//! One bench target of a gate: built, and measured. A gate of several measures one after the other, and judges them as one suite.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::cli::explain::Explaining;
use crate::cli::gate_options::Gate;
use crate::cli::outputs::Kept;
use crate::cli::settings_policy::GateSettings;
use crate::cli::sides::{self, BuiltPair};
use crate::cli::{allocated, bench_counters, explain, measuring, memory, same_code};
use crate::config::{BenchTarget, Config, ServerConfig};
use crate::paired::{PairedRequest, Started, UnderLoad, of_shard, start};
use infergate_build::checkouts::Checkouts;
use infergate_build::code::Changed;
use infergate_build::{output, progress};
use infergate_core::case::{Case, Phase, choose_benches};
use infergate_core::worker::WorkerError;
use infergate_load::plan::shard::Shard;
use infergate_receipts::{PairedReceipt, Side, clause};

/// Both sides of one bench target, built.
pub struct BuiltBench {
    pub config: Config,
    pub request: PairedRequest,
    built: BuiltPair,
    /// The functions that differ, if cases can be traced for them.
    changed: Option<Changed>,
    /// The benches of both sides, built to count their heap, if they are to be counted.
    counting: Option<bench_counters::CountingBuilds>,
    /// Runs that are followed for leaks.
    memory_runs: usize,
    /// How long building both sides took, nanoseconds.
    builds_ns: u64,
}

/// Bench targets that are not compared, each as a sentence with the reason.
#[derive(Default)]
pub struct FailedTargets {
    /// Count against head: they work in base, or it is unknown.
    pub in_head: Vec<String>,
    /// Do not count: they fail in base, so there is nothing to compare with.
    pub in_base: Vec<String>,
}

impl FailedTargets {
    /// Adds a bench target and prints why it is not compared. `in_base`: it fails in base, and maybe in head too; `None` if not known.
    fn add(&mut self, bench: &BenchTarget, error: &anyhow::Error, in_base: Option<bool>) {
        let is_not_comparable = matches!(WorkerError::find(error), Some(WorkerError::NotComparable(_)));
        let (list, whose) = match in_base {
            Some(true) => (&mut self.in_base, ", it fails in base"),
            Some(false) => (&mut self.in_head, ", it fails in head alone"),
            None if is_not_comparable => (&mut self.in_base, ""),
            None => (&mut self.in_head, ""),
        };
        let why = |why: String| format!("bench target '{}' is not compared{whose}: {why}", bench.name());
        output::status_escaped(&why(format!("{error:#}")));
        list.push(why(clause(error)));
    }

    /// As [`add`](Self::add), for one that was not measured to its end.
    fn add_unmeasured(&mut self, bench: &BenchTarget, error: &anyhow::Error) {
        let is_bases = match WorkerError::find(error) {
            None | Some(WorkerError::Failed(_) | WorkerError::NotComparable(_)) => false,
            // The error names the side, maybe after a case and before a worker's own text.
            Some(error) => error.to_string().split(": ").find(|word| ["base", "head"].contains(word)) == Some("base"),
        };
        self.add(bench, error, is_bases.then_some(true));
    }
}

/// Builds both sides of each bench target. If there are several, a target that fails or has no cases is dropped. The failure goes to
/// `failed`.
///
/// # Errors
/// A target that cannot be built, if no other is left; cases that no target has.
pub fn of_benches(
    gate: &Gate,
    settings: &GateSettings,
    (benches, checkouts): (&[BenchTarget], &Checkouts),
    failed: &mut FailedTargets,
) -> Result<Vec<BuiltBench>> {
    let mut built_benches = Vec::new();
    for (at, bench) in benches.iter().enumerate() {
        let together = built_together(benches, at);
        let config = Config { bench: BenchTarget { together, ..bench.clone() }, ..settings.config.clone() };
        match BuiltBench::build(gate, &config, checkouts, settings) {
            Ok(built_bench) => built_benches.push(built_bench),
            Err(error) if progress::is_cancelled() || built_benches.is_empty() && at + 1 == benches.len() => {
                return Err(error);
            }
            Err(error) => failed.add(bench, &error, sides::fails_in_base(gate, &config, checkouts)),
        }
    }
    if benches.len() > 1 {
        built_benches = combine_into_suite(built_benches, benches, failed)?;
    }
    // Before anything is timed: later the working tree may hold something else.
    for built_bench in &mut built_benches {
        let (begun, request) = (Instant::now(), &built_bench.request);
        if built_bench.memory_runs > 0 && !request.quick && !request.is_same_code() {
            built_bench.counting = bench_counters::build(&built_bench.built.sources, request);
        }
        built_bench.builds_ns += begun.elapsed().as_nanos() as u64;
        progress::ensure_not_cancelled()?;
    }
    Ok(built_benches)
}

/// The bench targets that are built in one call with this one: if it is the first of its package, all others of the package.
fn built_together(benches: &[BenchTarget], at: usize) -> Vec<String> {
    let mut of_package = benches.iter().enumerate().filter(|(_, other)| other.package == benches[at].package);
    let is_first = of_package.next().is_some_and(|(first, _)| first == at);
    of_package.filter(|_| is_first).map(|(_, other)| other.target.clone()).collect()
}

/// Measures bench targets one after the other until one is cut short, and keeps the blocks of each at its `place`. Each has its share of
/// the budget; what it does not use goes to the next ones. Gives the receipts, and whether a target was not begun.
///
/// # Errors
/// A target that cannot be measured, if no other was.
pub fn measure_all(
    built_benches: Vec<BuiltBench>,
    budget: Option<Duration>,
    place: impl Fn(&BenchTarget) -> PathBuf,
    explaining: Option<&Explaining>,
    failed: &mut FailedTargets,
) -> Result<(Vec<PairedReceipt>, bool)> {
    let count = built_benches.len();
    let shares: Vec<f64> = built_benches.iter().map(|built_bench| built_bench.request.share_of_time).collect();
    let (mut receipts, mut left) = (Vec::new(), budget);
    for (at, built_bench) in built_benches.into_iter().enumerate() {
        let bench = built_bench.config.bench.clone();
        let budget = left.map(|left| left.mul_f64(shares[at] / shares[at..].iter().sum::<f64>()));
        let begun = Instant::now();
        let receipt = match built_bench.measure(&place(&bench), budget, explaining) {
            Ok(receipt) => receipt,
            Err(_) if progress::is_cancelled() && !receipts.is_empty() => return Ok((receipts, true)),
            Err(error) if progress::is_cancelled() || receipts.is_empty() && at + 1 == count => return Err(error),
            Err(error) => {
                failed.add_unmeasured(&bench, &error);
                left = left.map(|left| left.saturating_sub(begun.elapsed()));
                continue;
            }
        };
        let spent = Duration::from_nanos(receipt.took.pilot_ns + receipt.took.timing_ns);
        left = left.map(|left| left.saturating_sub(spent));
        let ends_here = receipt.partial || progress::is_cancelled();
        receipts.push(receipt);
        if ends_here {
            return Ok((receipts, at + 1 < count));
        }
    }
    Ok((receipts, false))
}

/// Makes one suite of several bench targets: each knows how many cases the others have, gets its share of the time, and prefixes its names.
fn combine_into_suite(
    built_benches: Vec<BuiltBench>,
    benches: &[BenchTarget],
    failed: &mut FailedTargets,
) -> Result<Vec<BuiltBench>> {
    let mut with_cases = Vec::new();
    for mut built_bench in built_benches {
        let prefix = Some(prefix(&built_bench.config.bench, benches));
        let request = &mut built_bench.request;
        request.base.bench_prefix.clone_from(&prefix);
        request.head.bench_prefix = prefix;
        match list_benches(request, Side::Head) {
            Ok(cases) => with_cases.push((built_bench, cases)),
            Err(error) if progress::is_cancelled() => return Err(error),
            Err(error) => {
                let in_base = list_benches(request, Side::Base).is_err();
                failed.add(&built_bench.config.bench, &error, Some(in_base));
            }
        }
    }
    let all_failed = || failed.in_head.iter().chain(&failed.in_base).map(String::as_str).collect::<Vec<_>>().join("; ");
    let (first, _) = with_cases.first().with_context(all_failed)?;
    let all: Vec<Case> = with_cases.iter().flat_map(|(_, cases)| cases).copied().collect();
    let (shard, chosen) = (first.request.shard, choose_benches(&first.request.cases, &all)?);
    // Shards divide the whole suite, so they do not depend on how benches are divided into targets.
    let mine = of_shard(shard, &chosen)?;
    let mut shared = Vec::new();
    for (mut built_bench, cases) in with_cases {
        let own: Vec<Case> = cases.iter().copied().filter(|case| mine.contains(case)).collect();
        if own.is_empty() {
            continue;
        }
        let request = &mut built_bench.request;
        request.cases_in_other_runs = chosen.len() - own.len();
        request.share_of_time = own.len() as f64 / mine.len() as f64;
        // A pattern can name benches of another target alone.
        request.cases.retain(|pattern| choose_benches(std::slice::from_ref(pattern), &cases).is_ok());
        request.own_cases = Some(own);
        shared.push(built_bench);
    }
    Ok(shared)
}

/// `parse/`, or `codec/parse/` if another package has a bench target of that name.
fn prefix(bench: &BenchTarget, benches: &[BenchTarget]) -> String {
    let same = benches.iter().filter(|other| other.target == bench.target).count();
    match &bench.package {
        Some(package) if same > 1 => format!("{package}/{}/", bench.target),
        _ => format!("{}/", bench.target),
    }
}

/// The benches that a side has.
fn list_benches(request: &PairedRequest, side: Side) -> Result<Vec<Case>> {
    let Started { file, benches, .. } = start(request, side)?;
    ensure!(
        !benches.is_empty(),
        "{}: an engine's bench target is gated alone; name it with --bench-target",
        file.path().display()
    );
    Ok(benches)
}

impl BuiltBench {
    fn build(gate: &Gate, config: &Config, checkouts: &Checkouts, settings: &GateSettings) -> Result<Self> {
        let begun = Instant::now();
        let built = sides::build(gate, config, checkouts);
        progress::ensure_not_cancelled()?;
        let mut built = built?;
        let code_difference = same_code::compare_code(&gate.paired, config, &built);
        let memory_runs = if code_difference.is_same_memory { 0 } else { config.measured.memory.runs };
        // If a target limits a time, the same code is timed. Here only targets that limit counters need the memory programs.
        if code_difference.is_same_memory && config.policy.targets.is_empty() {
            (built.base_memory, built.head_memory) = (None, None);
        }
        let follows = memory_runs > 0 && built.head_memory.as_ref().is_some_and(|head| !head.is_timed);
        let (flags, is_server) = (&gate.paired, gate.paired.is_of_servers());
        let ServerConfig { users, window_s, .. } = config.server;
        let request = PairedRequest {
            memory_case: follows.then_some(config.measured.memory.case),
            shard: flags.shard.unwrap_or(Shard::WHOLE),
            quick: flags.quick,
            allow_output_change: flags.allow_output_change,
            code: code_difference.code,
            terms: settings.settings_record.clone(),
            under_load: users.filter(|_| is_server).map(|users| UnderLoad { users, window_s }),
            new_prompts: is_server,
            ready_within: is_server.then(|| config.server.least_load()),
            notes: [&settings.notes[..], &built.notes, &code_difference.notes].concat(),
            ..measuring::request(config, built.base.clone(), built.head.clone())?
        };
        Ok(Self {
            config: config.clone(),
            request,
            built,
            counting: None,
            memory_runs,
            changed: code_difference.changed,
            builds_ns: begun.elapsed().as_nanos() as u64,
        })
    }

    /// Measures until every case is settled or `budget` ends; then follows memory, counts allocations and explains what regressed. Keeps
    /// what there is so far at `place`.
    ///
    /// # Errors
    /// As [`measuring::measure`].
    pub fn measure(
        self,
        place: &Path,
        budget: Option<Duration>,
        explaining: Option<&Explaining>,
    ) -> Result<PairedReceipt> {
        let Self { config, mut request, built, changed, counting, memory_runs, builds_ns } = self;
        // The checkouts stay to the end.
        let BuiltPair { mut base_memory, mut head_memory, sources, .. } = built;
        request.budget = budget;
        let kept = Kept::at(place);
        let measured = measuring::measure(&request, &config, Some(&sources), changed.as_ref(), Some(&kept));
        let (mut receipt, builds) = measured.inspect_err(|_| kept.print_where())?;
        if request.quick {
            return Ok(receipt);
        }
        receipt.took.builds_ns += builds_ns;
        let begun = Instant::now();
        // The memory phase repeats a generation, and benches have none.
        if sources.head.is_some() && receipt.cases.iter().all(|case| case.id.phase() == Phase::Bench) {
            (base_memory, head_memory) = (None, None);
        }
        let mut programs = base_memory.clone().zip(head_memory.as_ref().map(|head| head.program.clone()));
        // The kept receipt has every block, and is partial until memory and counts are in it.
        if !receipt.partial
            && let Err(error) = memory::attach_to_pair(&config, base_memory, head_memory, memory_runs, &mut receipt)
        {
            // The receipt keeps what was measured before.
            if progress::is_cancelled() {
                receipt.partial = true;
            } else {
                receipt.broken.push(format!("head's memory is not followed: {}", output::error_line(&error)));
            }
        }
        if let Some(counting) = counting.filter(|_| !receipt.partial && receipt.base.counted.is_empty()) {
            bench_counters::attach(&mut receipt, &counting, &request);
            programs = counting.ok().or(programs);
        }
        receipt.took.counting_ns = begun.elapsed().as_nanos() as u64;
        let begun = Instant::now();
        if let Some(explaining) = explaining {
            kept.keep(&receipt);
            if let Some((base, head)) = programs.filter(|_| !receipt.partial) {
                allocated::attach(&mut receipt, &config.policy, &request, (&base, &head));
            }
            explain::attach(&mut receipt, &config.policy, (&request, &builds), changed.as_ref(), explaining);
        }
        receipt.took.explaining_ns = begun.elapsed().as_nanos() as u64;
        Ok(receipt)
    }
}
