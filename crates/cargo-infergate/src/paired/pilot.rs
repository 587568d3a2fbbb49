//! Before the first block: are the outputs the same, how long does an iteration take, how much does it vary?

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::benches::shared;
use super::block::{Pair, Who};
use super::iterations::divide;
use super::left_out::{self, Ended, Fails, LeftOut};
use super::pairs::{AIM, Pairs};
use super::planning::{self, pair_times_ns};
use super::windows::Levels;
use super::{AnchorRequest, PairedRequest, Program, Shard, TurnTokens, Worker, Workers};
use crate::gate::output::{Agreement, compare, default_tolerance};
use crate::gate::paired::median_threshold;
use crate::receipt::{
    AnchorRecord, BlockCase, PAIRED_SCHEMA, PairedCase, PairedReceipt, ShareRecord, Side, SideRecord, timestamp,
};
use crate::suite::fitting;
use infergate_core::case::Case;
use infergate_core::engine::Pacing;
use infergate_core::progress::Progress;
use infergate_core::receipt::limits::MAX_PAIRED_CASES;
use infergate_core::stats::{median, robust_std};
use infergate_core::worker::{Client, Patience, PreparedReply, WorkerError, WorkerFile, ensure_not};

/// The pilot takes this many pairs of a case, or as many as fit [`PILOT_NS`] and a share of the second, but never fewer than the least: two say nothing
/// of how much pairs vary.
const PILOT_PAIRS: usize = 64;
const LEAST_PILOT_PAIRS: usize = 4;
const PILOT_NS: f64 = 3e9;
const PILOT_OF_ALL_NS: f64 = 3e10;
/// The same of a case whose samples hold several iterations: each is a mean already, and later blocks correct the plan.
const PILOT_PAIRS_OF_MANY: usize = 16;

/// A bench that was never run may take so long, or a fifth of the budget, and never less than the least.
const FIRST_OF_BENCH: Duration = Duration::from_secs(120);
const LEAST_OF_BENCH: Duration = Duration::from_secs(10);

pub struct Pilot {
    /// The suite, without blocks.
    pub receipt: PairedReceipt,
    /// The files, and how long their answers took.
    pub workers: Workers,
    /// Tokens of one turn of a generation.
    pub turn_tokens: TurnTokens,
    /// What a pair of each case costs.
    pub pairs: Pairs,
    /// The time a block will take, nanoseconds.
    pub block_ns: u64,
}

/// One process of each side, loaded, with the time that took.
struct Started<'a> {
    client: Client<'a>,
    file: WorkerFile,
    record: SideRecord,
    load_ns: u64,
    /// The only cases there are, where they are criterion benches.
    benches: Vec<Case>,
    outputs: Vec<PreparedReply>,
}

/// Loads head and base, in this order: what head cannot do is a failed run, what only base cannot do is not comparable. A bench that
/// fails is named and left out.
pub fn run(
    request: &PairedRequest,
    progress: &mut dyn FnMut(&Progress),
    cancelled: &AtomicBool,
) -> Result<Pilot, WorkerError> {
    let mut left = Vec::new();
    loop {
        match attempt(request, &left, progress, cancelled) {
            Ok(mut pilot) => {
                left_out::note(&mut pilot.receipt, &left, request);
                return Ok(pilot);
            }
            Err(Ended::By(bench)) => left.push(bench),
            Err(Ended::WithNothingLeft) => return Err(left_out::last(left)),
            Err(Ended::Run(error)) => return Err(error),
        }
    }
}

fn attempt(
    request: &PairedRequest,
    left: &[LeftOut],
    progress: &mut dyn FnMut(&Progress),
    cancelled: &AtomicBool,
) -> Result<Pilot, Ended> {
    let begun = Instant::now();
    let mut say = |label: &str| progress(&Progress { label: label.to_owned(), done_steps: 0, total_steps: 1 });
    say("pilot: loading head");
    let (mut head, machine) = start(request, Who::Head, &request.head, cancelled)?;
    let context_tokens = head.record.engine.context_tokens;
    let cases = match fitting(&request.cases, request.memory_case, context_tokens, &head.benches) {
        Ok(cases) => cases,
        Err(error) => return Err(only_in_base(request, &head.benches, cancelled).unwrap_or(error.into()).into()),
    };
    let count = request.only.as_ref().map_or(cases.len(), Vec::len);
    let suite_cases = count + request.elsewhere;
    let mut cases = of_shard(request.shard, cases)?;
    cases.retain(|case| request.only.as_ref().is_none_or(|only| only.contains(case)));
    say("pilot: loading base");
    let (mut base, _) = start(request, Who::Base, &request.base, cancelled)?;
    ensure_same_model("base", &base.record, &head.record)?;
    let benches = shared(&request.cases, cases, &head.benches, &base.benches)?;
    let unmatched = benches.only_in_head.len() + benches.only_in_base.len();
    (head.record.unmatched, base.record.unmatched) = (benches.only_in_head, benches.only_in_base);
    let mut cases = benches.cases;
    cases.retain(|case| left.iter().all(|left| left.case != *case));
    if cases.is_empty() && !left.is_empty() {
        return Err(Ended::WithNothingLeft);
    }
    ensure_few(share(request, suite_cases).map_or(cases.len() + unmatched, |_| suite_cases))?;
    let mut anchor = None;
    if let Some(AnchorRequest { program: Some(program), .. }) = &request.anchor {
        say("pilot: loading the anchor");
        let (started, _) = start(request, Who::Anchor, program, cancelled)?;
        ensure_same_model("anchor", &started.record, &head.record)?;
        anchor = Some(started);
    }
    for &case in &cases {
        ensure_not(cancelled)?;
        say(&format!("pilot: {case}"));
        let in_head = head.client.prepare(case, None).map_err(|error| {
            let fails = if base.client.prepare(case, None).is_err() { Fails::Both } else { Fails::HeadAlone };
            Ended::of(request, case, error.of("head"), fails)
        })?;
        // All read the same text, so that their numbers can be compared at every position.
        for (name, other) in [("base", Some(&mut base)), ("anchor", anchor.as_mut())] {
            let Some(other) = other else { continue };
            let said = other.client.prepare_beside(case, &in_head.output);
            let said = said.map_err(|error| only_in_head(name, error, &format!("run {case}")));
            other.outputs.push(said.map_err(|error| Ended::of(request, case, error, Fails::BaseAlone))?);
        }
        head.outputs.push(in_head);
    }

    let stepwise = [Some(&base), Some(&head), anchor.as_ref()]
        .into_iter()
        .flatten()
        .all(|started| started.record.engine.pacing == Pacing::Stepwise);
    let mut turn_tokens = TurnTokens::new();
    let mut pairs = Pairs::new(request.share_of_time);
    let mut planned = Vec::new();
    let mut sampling_ns = 0.0;
    let outputs = |said: &[PreparedReply]| {
        cases.iter().zip(said).map(|(case, reply)| (*case, reply.output.ids.clone())).collect()
    };
    let (anchor_client, anchor) =
        anchor.map(|anchor| (anchor.client, (anchor.file, anchor.record, anchor.load_ns, anchor.outputs))).unzip();
    let mut pair = Pair { base: base.client, head: head.client, anchor: anchor_client };
    let pilot_ns = PILOT_NS.min(PILOT_OF_ALL_NS * request.share_of_time / cases.len() as f64);
    let mut levels = Levels::new(request.under_load.as_ref());
    for (at, &case) in cases.iter().enumerate() {
        say(&format!("pilot: {case}"));
        let (was, is) = (&base.outputs[at].output, &head.outputs[at].output);
        let tolerance = request.drift_tolerance.unwrap_or_else(|| default_tolerance(&base.record.engine.dtype));
        let is_meant = request.allow_output_change || request.accepts_output(case);
        let compared = is_meant || compare(was, is, tolerance).agreement != Agreement::Changed;
        let timed = compared && !request.is_same_code();
        let mut plan = PairedCase {
            id: case,
            threshold: median_threshold(request.threshold, None),
            threshold_by_noise: request.threshold.is_none(),
            pairs: 0,
            iterations_per_sample: 1,
            warm_up: false,
            base_output: was.clone(),
            head_output: is.clone(),
            timed,
            expected_std: None,
            mean: None,
            layout_std: None,
            throughput: head.outputs[at].throughput,
            load: None,
        };
        if let Some(cost_ns) = if timed { levels.plan(&mut pair, &mut plan)? } else { None } {
            sampling_ns += cost_ns;
        } else if timed {
            let seen = divide(&mut pair, &mut plan, stepwise, &mut turn_tokens)
                .and_then(|()| sample(&mut pair, &plan, &turn_tokens, stepwise, pilot_ns));
            let (seen, cost) = seen.map_err(|error| Ended::sampling(request, case, error))?;
            left_out::ensure_something(request, &plan, &seen)?;
            pairs.cost(case, cost);
            let pair_ns = median(&pair_times_ns(&seen)).unwrap_or(1.0).max(1.0) * cost;
            pairs.plan(case, pair_ns, robust_std(&seen.log_ratios().unwrap_or_default()).unwrap_or(AIM));
            sampling_ns += planning::decide(&mut plan, &seen, cost, cases.len(), request);
        }
        planned.push(plan);
    }
    // Twice the whole output was computed here: nothing a block asks for takes longer.
    let (mut anchor_worker, mut anchor_side, mut anchor_load_ns) = (None, None, 0);
    if let (Some((file, record, load_ns, said)), Some(client)) = (anchor, &pair.anchor) {
        anchor_worker = Some(Worker { file, patience: client.patience().clone(), outputs: outputs(&said) });
        (anchor_side, anchor_load_ns) = (Some(record), load_ns);
        // Of three that take as long as each other, two were counted.
        sampling_ns *= 1.5;
    }
    let workers = Workers {
        base: Worker { file: base.file, patience: pair.base.patience().clone(), outputs: outputs(&base.outputs) },
        head: Worker { file: head.file, patience: pair.head.patience().clone(), outputs: outputs(&head.outputs) },
        anchor: anchor_worker,
    };
    let mut receipt = PairedReceipt {
        schema: PAIRED_SCHEMA.into(),
        created: timestamp(),
        partial: false,
        out_of_time: false,
        invalid: Vec::new(),
        broken: Vec::new(),
        tool: env!("CARGO_PKG_VERSION").into(),
        machine,
        base: base.record,
        head: head.record,
        threads: request.load.threads,
        seed: request.load.seed,
        cases: planned,
        blocks: Vec::new(),
        memory: None,
        layouts: None,
        code: request.code.clone(),
        terms: request.terms.clone(),
        built_with: request.built_with.clone(),
        notes: request.notes.clone(),
        anchor: request.anchor.as_ref().map(|anchor| AnchorRecord { limit: anchor.limit, side: anchor_side }),
        servers: (!request.base.servers.is_empty()).then_some(request.base.servers.len()),
        share: share(request, suite_cases),
        resumed: Vec::new(),
        explained: Vec::new(),
        allocated: Vec::new(),
    };
    let loads_ns = head.load_ns + base.load_ns + anchor_load_ns;
    let planned_ns = pairs.block_ns(&receipt.cases);
    if let Some(room_ns) = planning::room_ns(
        request,
        receipt.share,
        &receipt.cases,
        begun.elapsed(),
        sampling_ns - planned_ns + loads_ns as f64,
    ) {
        planning::fit(&mut pairs, &mut receipt.cases, room_ns, request);
        sampling_ns -= planned_ns - pairs.block_ns(&receipt.cases);
    }
    let block_ns = sampling_ns as u64 + loads_ns;
    Ok(Pilot { receipt, workers, turn_tokens, pairs, block_ns })
}

/// The cases that this machine measures.
fn of_shard(shard: Option<Shard>, cases: Vec<Case>) -> anyhow::Result<Vec<Case>> {
    let Some(shard) = shard else { return Ok(cases) };
    let count = cases.len();
    let taken: Vec<Case> =
        cases.into_iter().enumerate().filter(|(at, _)| shard.takes(*at)).map(|(_, case)| case).collect();
    ensure!(
        !taken.is_empty(),
        "--shard {}/{}: there are {count} cases; use at most so many shards",
        shard.number,
        shard.of
    );
    Ok(taken)
}

fn share(request: &PairedRequest, suite_cases: usize) -> Option<ShareRecord> {
    let shard = request.shard.unwrap_or(Shard { number: 1, of: 1 });
    (shard.of > 1 || request.elsewhere > 0).then(|| shard.record(suite_cases))
}

/// A paired run looks at its cases together: with each further one, each has to show more.
fn ensure_few(cases: usize) -> anyhow::Result<()> {
    ensure!(
        cases <= MAX_PAIRED_CASES,
        "{cases} benches are more than the {MAX_PAIRED_CASES} that one gate compares; name those that matter with --cases"
    );
    Ok(())
}

fn start<'a>(
    request: &PairedRequest,
    who: Who,
    program: &Program,
    cancelled: &'a AtomicBool,
) -> Result<(Started<'a>, crate::receipt::Machine), WorkerError> {
    ensure_not(cancelled)?;
    let name = who.name();
    let file = program.open().map_err(|error| error.of(name))?;
    let patience = Patience::default().with_first_of_bench(first_of_bench(request, program));
    let spawned = Client::spawn(&file, &request.load, patience, cancelled);
    let (mut client, hello) = spawned.map_err(|error| match error {
        WorkerError::Died(why) | WorkerError::Protocol(why) | WorkerError::Hung(why) | WorkerError::Refused(why)
            if who != Who::Head =>
        {
            let remedy = "from a revision whose bench target calls infergate::bench::main";
            WorkerError::NotComparable(format!(
                "{name} does not speak the worker protocol ({why}); build {name} {remedy}"
            ))
        }
        error => error.of(name),
    })?;
    let loaded = client.load(&request.load, request.prompt_text.as_deref()).map_err(|error| match who {
        Who::Base | Who::Anchor => only_in_head(name, error, &format!("load {}", request.load.model)),
        Who::Head => error.of("head"),
    })?;
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
        Started { client, file, record, load_ns: loaded.load_ns, benches: loaded.benches, outputs: Vec::new() },
        hello.machine.with_devices(loaded.devices),
    ))
}

/// Where base has a bench that was asked for by its name, and head has none: what cannot be compared.
fn only_in_base(request: &PairedRequest, in_head: &[Case], cancelled: &AtomicBool) -> Option<WorkerError> {
    if in_head.is_empty() {
        return None;
    }
    let (base, _) = start(request, Who::Base, &request.base, cancelled).ok()?;
    let gone = |name: &&String| {
        let is_it = |bench: &&Case| bench.to_string() == **name || bench.id() == **name;
        base.benches.iter().any(|bench| is_it(&bench)) && !in_head.iter().any(|bench| is_it(&bench))
    };
    let name = request.cases.iter().find(gone)?;
    Some(WorkerError::NotComparable(format!("head has no bench '{name}' any more; leave it out of --cases")))
}

/// How long a bench may take that was never run. What is started behind a launcher may start something of its own first.
fn first_of_bench(request: &PairedRequest, program: &Program) -> Option<Duration> {
    let is_bench = program.launcher.is_none() && program.servers.is_empty();
    is_bench.then(|| request.budget.map_or(FIRST_OF_BENCH, |budget| (budget / 5).clamp(LEAST_OF_BENCH, FIRST_OF_BENCH)))
}

/// Another model is another question, however fast it is answered.
fn ensure_same_model(name: &str, base: &SideRecord, head: &SideRecord) -> Result<(), WorkerError> {
    let (was, is) = (&base.engine, &head.engine);
    let weights = was.weights_sha256.as_ref().zip(is.weights_sha256.as_ref());
    let reason = if was.model != is.model {
        format!("{name} loads the model '{}' and head '{}'", was.model, is.model)
    } else if weights.is_some_and(|(was, is)| was != is) {
        format!("{name} and head load other weights of {}", is.model)
    } else {
        return Ok(());
    };
    Err(WorkerError::NotComparable(format!("{reason}; compare like with like, or name one model with --model")))
}

/// What only base or the anchor refuses cannot be compared; what breaks is a failed run on every side.
fn only_in_head(name: &str, error: WorkerError, what: &str) -> WorkerError {
    match error {
        WorkerError::Refused(why) => {
            let remedy = format!("choose what both can run, or another {name}");
            WorkerError::NotComparable(format!("{name} cannot {what}: {why}; {remedy}"))
        }
        error => error.of(name),
    }
}

/// A few pairs, by which the rest is decided, and what a pair costs: the time it takes by the time that is measured of it. One of
/// an engine that is not `stepwise` is a whole request, of which a gap between tokens is a small part, and one of a bench holds what it
/// sets up.
fn sample(
    pair: &mut Pair,
    plan: &PairedCase,
    turn_tokens: &TurnTokens,
    stepwise: bool,
    pilot_ns: f64,
) -> Result<(BlockCase, f64), WorkerError> {
    let mut one = plan.clone();
    one.pairs = 2;
    let is_bench = matches!(plan.id, Case::Bench(_));
    let mut before = None;
    if is_bench {
        // Once: what stands before a bench is run for it, and is no part of a pair.
        before = Some(pair.measure(&one, Side::Base, 0, turn_tokens)?);
    }
    let begun = Instant::now();
    let mut seen = pair.measure(&one, Side::Base, 0, turn_tokens)?;
    let took_ns = begun.elapsed().as_nanos() as f64;
    let times_ns = pair_times_ns(&seen);
    let waits = is_bench || !stepwise;
    let cost = if waits { (took_ns / times_ns.iter().sum::<f64>().max(1.0)).max(1.0) } else { 1.0 };
    let pair_ns = median(&times_ns).unwrap_or(1.0).max(1.0) * cost;
    let mut add = |more: BlockCase| {
        seen.base_ns.extend(more.base_ns);
        seen.head_ns.extend(more.head_ns);
        seen.base_ns.len()
    };
    let had = before.map_or(one.pairs, &mut add);
    let most = if plan.iterations_per_sample > 1 { PILOT_PAIRS_OF_MANY } else { PILOT_PAIRS };
    one.pairs = ((pilot_ns / pair_ns) as usize).clamp(LEAST_PILOT_PAIRS, most).saturating_sub(had);
    if one.pairs > 0 {
        add(pair.measure(&one, Side::Base, 0, turn_tokens)?);
    }
    Ok((seen, cost))
}
