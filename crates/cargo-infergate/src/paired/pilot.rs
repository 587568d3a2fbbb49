//! Before the first block: are the outputs the same, how long does an iteration take, how much does it vary?

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::benches::{ensure_counted_alike, shared};
use super::block::Pair;
use super::iterations::divide;
use super::left_out::{self, Ended, Fails, LeftOut};
use super::one_core::Spent;
use super::other_lengths;
use super::pairs::{AIM, Pairs};
use super::planning::{self, pair_times_ns};
use super::started::{Before, only_in_base, only_in_head, shorter_context, start};
use super::together::{self, Together};
use super::windows::Levels;
use super::{PairedRequest, Shard, TurnTokens, Worker, Workers, first_pairs, forgets};
use crate::suite::fitting;
use infergate_core::case::Case;
use infergate_core::clock::MonotonicClock;
use infergate_core::engine::Pacing;
use infergate_core::progress::Progress;
use infergate_core::receipt::limits::MAX_PAIRED_CASES;
use infergate_core::stats::{median, robust_std};
use infergate_core::worker::{PreparedReply, WorkerError, ensure_not};
use infergate_judge::output::{Agreement, compare, default_tolerance};
use infergate_receipts::{
    Note, PAIRED_SCHEMA, PairedCase, PairedReceipt, ShareRecord, Side, SideRecord, Took, timestamp,
};

/// The pilot samples a case for so long, or for its share of the second.
const PILOT_NS: f64 = 3e9;
const PILOT_OF_ALL_NS: f64 = 3e10;

pub struct Pilot {
    /// The suite, without blocks.
    pub receipt: PairedReceipt,
    /// The files, and how long their answers took.
    pub workers: Workers,
    /// Tokens of one turn of a generation.
    pub turn_tokens: TurnTokens,
    /// What a pair of each case costs.
    pub pairs: Pairs,
    /// The time that starting a process of each side takes, nanoseconds.
    pub starts_ns: u64,
    /// The time a block will take, nanoseconds.
    pub block_ns: u64,
    /// By how much head differed from base in the pilot, as ratios: a few pairs, from which nothing is judged.
    pub ratios: Vec<(Case, f64)>,
}

/// Loads head and base, in this order: what head cannot do is a failed run, what only base cannot do is not comparable. A bench that
/// fails is named and left out.
pub fn run(
    request: &PairedRequest,
    progress: &mut dyn FnMut(&Progress),
    cancelled: &AtomicBool,
) -> Result<Pilot, WorkerError> {
    let begun = Instant::now();
    let (mut left, mut longest) = (Vec::new(), Duration::ZERO);
    loop {
        match attempt(request, begun, &mut left, &mut longest, progress, cancelled) {
            Ok(mut pilot) => {
                left_out::note(&mut pilot.receipt, &left, request);
                return Ok(pilot);
            }
            Err(Ended::By(bench)) => left.push(bench),
            Err(Ended::WithNothingLeft) => return Err(left_out::last(left, request)),
            Err(Ended::Run(error)) => return Err(error),
        }
    }
}

fn attempt(
    request: &PairedRequest,
    begun: Instant,
    left: &mut Vec<LeftOut>,
    longest: &mut Duration,
    progress: &mut dyn FnMut(&Progress),
    cancelled: &AtomicBool,
) -> Result<Pilot, Ended> {
    let mut say = |label: &str| progress(&Progress { label: label.to_owned(), done_steps: 0, total_steps: 1 });
    let before = Before { hung: left.iter().filter(|bench| bench.has_hung()).count(), longest: *longest };
    say("pilot: loading head");
    let (mut head, machine) = start(request, Side::Head, before, cancelled)?;
    let context_tokens = head.record.engine.context_tokens;
    let cases = match fitting(&request.cases, request.memory_case, context_tokens, &head.benches) {
        Ok(cases) => cases,
        Err(error) if head.benches.is_empty() => {
            return Err(shorter_context(request, context_tokens, error, cancelled).into());
        }
        Err(error) => return Err(only_in_base(request, &head.benches, cancelled).unwrap_or(error.into()).into()),
    };
    let count = request.only.as_ref().map_or(cases.len(), Vec::len);
    let suite_cases = count + request.elsewhere;
    // Of several bench targets it is said which cases.
    let mut cases = of_shard(request.shard.filter(|_| request.only.is_none()), cases)?;
    cases.retain(|case| request.only.as_ref().is_none_or(|only| only.contains(case)));
    say("pilot: loading base");
    let (mut base, _) = start(request, Side::Base, before, cancelled)?;
    ensure_same_model(&base.record, &head.record)?;
    let is_share = request.shard.is_some_and(|shard| shard.of > 1);
    let benches = shared(&request.cases, cases, (&head.benches, &base.benches), is_share)?;
    let unmatched = benches.only_in_head.len() + benches.only_in_base.len();
    (head.record.unmatched, base.record.unmatched) = (benches.only_in_head, benches.only_in_base);
    let mut cases = benches.cases;
    cases.retain(|case| left.iter().all(|left| left.case != *case));
    if cases.is_empty() && !left.is_empty() && !is_share {
        return Err(Ended::WithNothingLeft);
    }
    ensure_few(share(request, suite_cases).map_or(cases.len() + unmatched, |_| suite_cases))?;
    let mut prepared = Vec::new();
    for &case in &cases {
        ensure_not(cancelled)?;
        say(&format!("pilot: {case}"));
        let in_head = match head.client.prepare(case, None) {
            Ok(in_head) => in_head,
            Err(error) => {
                let in_base = base.client.prepare(case, None).err();
                let fails = if in_base.is_some() { Fails::Both } else { Fails::HeadAlone };
                let lives = is_answer(&error) && in_base.as_ref().is_none_or(is_answer);
                left_out::go_on(Ended::of(request, case, error.about(case).of("head"), fails), lives, left)?;
                continue;
            }
        };
        *longest = head.client.patience().prepared(case).unwrap_or_default().max(*longest);
        // Both read the same text, so that their numbers can be compared at every position.
        let in_base = base.client.prepare_beside(case, &in_head.output);
        let is_refused = in_base.as_ref().is_err_and(is_answer);
        let in_base = match in_base.map_err(|error| only_in_head(error, &format!("run {case}"))) {
            Ok(in_base) => in_base,
            Err(error) => {
                left_out::go_on(Ended::of(request, case, error, Fails::BaseAlone), is_refused, left)?;
                continue;
            }
        };
        ensure_counted_alike(case, &in_base, &in_head)?;
        *longest = base.client.patience().prepared(case).unwrap_or_default().max(*longest);
        base.outputs.push(in_base);
        head.outputs.push(in_head);
        prepared.push(case);
    }
    let cases = prepared;
    if cases.is_empty() && !left.is_empty() && !is_share {
        return Err(Ended::WithNothingLeft);
    }

    let stepwise = [&base, &head].iter().all(|started| started.record.engine.pacing == Pacing::Stepwise);
    let mut turn_tokens = TurnTokens::new();
    let mut pairs = Pairs::new(request.share_of_time);
    let (mut planned, mut ratios) = (Vec::new(), Vec::new());
    let mut sampling_ns = 0.0;
    let outputs = |said: &[PreparedReply]| {
        cases.iter().zip(said).map(|(case, reply)| (*case, reply.output.ids.clone())).collect()
    };
    let mut pair = Pair { base: base.client, head: head.client, nth: 0 };
    let pilot_ns = PILOT_NS.min(PILOT_OF_ALL_NS * request.share_of_time / cases.len() as f64);
    let mut levels = Levels::new(request.under_load.as_ref());
    let is_timed = |at: usize, case: Case| {
        let tolerance = request.drift_tolerance.unwrap_or_else(|| default_tolerance(&base.record.engine));
        let is_meant = request.allow_output_change || request.accepts_output(case);
        let agreement = || compare(&base.outputs[at].output, &head.outputs[at].output, tolerance).agreement;
        (is_meant || agreement() != Agreement::Changed) && !request.is_same_code()
    };
    let timed: Vec<bool> = cases.iter().enumerate().map(|(at, case)| is_timed(at, *case)).collect();
    // First: samples are sized by the faster side, and one that only looks a prompt up would have the other read it for minutes.
    say("pilot: reading new prompts");
    let of_timed = cases.iter().zip(&timed).filter(|(_, timed)| **timed).map(|(case, _)| *case);
    let keeps = forgets::ensure(&mut pair, of_timed)?;
    for (at, &case) in cases.iter().enumerate() {
        say(&format!("pilot: {case}"));
        let (was, is, timed) = (&base.outputs[at].output, &head.outputs[at].output, timed[at]);
        let mut plan = PairedCase {
            id: case,
            threshold: request.threshold,
            widest: request.threshold,
            pairs: 0,
            iterations_per_sample: 1,
            warm_up: false,
            one_core: false,
            base_output: was.clone(),
            head_output: is.clone(),
            timed,
            expected_std: None,
            mean: None,
            throughput: head.outputs[at].throughput,
            load: None,
        };
        if let Some(cost_ns) = if timed { levels.plan(&mut pair, &mut plan)? } else { None } {
            sampling_ns += cost_ns;
        } else if timed {
            let before = Spent::so_far(pair.processes());
            let seen = divide(&mut pair, &mut plan, stepwise, &mut turn_tokens).and_then(|()| {
                plan.one_core = Spent::so_far(pair.processes()).is_one_thread_since(&before);
                first_pairs::take(&plan, stepwise, pilot_ns, &MonotonicClock::new(), |pairs| {
                    pair.measure(&PairedCase { pairs, ..plan.clone() }, Side::Base, &turn_tokens)
                })
            });
            let (seen, cost) = seen.map_err(|error| Ended::sampling(request, &plan, error, &mut pair))?;
            left_out::ensure_something(request, &plan, &seen)?;
            pairs.cost(case, cost);
            let pair_ns = median(&pair_times_ns(&seen)).unwrap_or(1.0).max(1.0) * cost;
            let logs = seen.log_ratios().unwrap_or_default();
            ratios.extend(median(&logs).map(|log| (case, log.exp())));
            pairs.plan(case, pair_ns, robust_std(&logs).unwrap_or(AIM));
            sampling_ns += planning::decide(&mut plan, &seen, cost, stepwise, cases.len(), request);
        }
        planned.push(plan);
    }
    // Twice the whole output was computed here: nothing a block asks for takes longer.
    let workers = Workers {
        base: Worker { file: base.file, patience: pair.base.patience().clone(), outputs: outputs(&base.outputs) },
        head: Worker { file: head.file, patience: pair.head.patience().clone(), outputs: outputs(&head.outputs) },
    };
    let context_tokens = context_tokens.min(base.record.engine.context_tokens);
    // The processes live here still: what ends one while it is asked for other lengths is no fault of its batches.
    let mut together = Together::default();
    if other_lengths::are_asked(request, &cases) {
        say("pilot: two requests together");
        together = together::compare(&mut pair, request, context_tokens, cancelled)?;
    }
    let compared = if together.ended {
        other_lengths::Compared::not_asked("a side ended at two requests together")
    } else {
        other_lengths::compare(&mut pair, &cases, context_tokens, request, cancelled, &mut say)?
    };
    // Two models at once might not fit into memory.
    drop(pair);
    let room_ns =
        |fixed_ns| planning::room_ns(request, share(request, suite_cases), &planned, begun.elapsed(), fixed_ns);
    let starts_ns = planning::starts_ns(
        head.start_ns + base.start_ns,
        room_ns(0.0).filter(|_| !request.quick && planned.iter().any(|case| case.timed)),
        || {
            say("pilot: loading once more");
            let start_ns = |side| Ok::<_, WorkerError>(start(request, side, before, cancelled)?.0.start_ns);
            Ok::<_, WorkerError>(start_ns(Side::Head)? + start_ns(Side::Base)?)
        },
    )?;
    let planned_ns = pairs.block_ns(&planned);
    if let Some(room_ns) = room_ns(sampling_ns - planned_ns + starts_ns as f64) {
        planning::fit(&mut pairs, &mut planned, room_ns, request);
        sampling_ns -= planned_ns - pairs.block_ns(&planned);
    }
    let block_ns = sampling_ns as u64 + starts_ns;
    let receipt = PairedReceipt {
        schema: PAIRED_SCHEMA.into(),
        created: timestamp(),
        partial: false,
        out_of_time: false,
        invalid: Vec::new(),
        broken: together.broken.into_iter().chain(compared.broken).collect(),
        tool: env!("CARGO_PKG_VERSION").into(),
        machine,
        base: base.record,
        head: head.record,
        threads: request.load.threads,
        seed: request.load.seed,
        cases: planned,
        other_lengths: compared.outputs,
        took: Took::default(),
        blocks: Vec::new(),
        memory: None,
        alike: None,
        code: request.code.clone(),
        terms: request.terms.clone(),
        built_with: request.built_with.clone(),
        notes: [
            request.notes.clone(),
            compared.notes,
            together.note.into_iter().chain(keeps).map(Note::from).collect(),
        ]
        .concat(),
        servers: (!request.base.servers.is_empty()).then_some(request.base.servers.len()),
        share: share(request, suite_cases),
        explained: Vec::new(),
        allocated: Vec::new(),
    };
    Ok(Pilot { receipt, workers, turn_tokens, pairs, starts_ns, block_ns, ratios })
}

/// Whether the process that says so lives on, and can be asked for another case.
fn is_answer(error: &WorkerError) -> bool {
    matches!(error, WorkerError::Refused(_) | WorkerError::Invalid(_))
}

/// The cases that this machine measures.
fn of_shard(shard: Option<Shard>, cases: Vec<Case>) -> anyhow::Result<Vec<Case>> {
    let Some(shard) = shard else { return Ok(cases) };
    let count = cases.len();
    let mine = shard.mine(&cases);
    let taken: Vec<Case> = cases.into_iter().filter(|case| mine.contains(case)).collect();
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

/// Another model is another question, however fast it is answered.
fn ensure_same_model(base: &SideRecord, head: &SideRecord) -> Result<(), WorkerError> {
    let (was, is) = (&base.engine, &head.engine);
    let weights = was.weights_sha256.as_ref().zip(is.weights_sha256.as_ref());
    let reason = if was.model != is.model {
        format!("base loads the model '{}' and head '{}'", was.model, is.model)
    } else if weights.is_some_and(|(was, is)| was != is) {
        format!("base and head load other weights of {}", is.model)
    } else {
        return Ok(());
    };
    Err(WorkerError::NotComparable(format!("{reason}; compare like with like, or name one model with --model")))
}
