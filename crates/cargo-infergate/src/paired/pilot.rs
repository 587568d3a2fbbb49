//! Before the first block: are the outputs the same, how long does an iteration take, how much does it vary?

use std::sync::atomic::AtomicBool;

use anyhow::ensure;

use super::benches::{ensure_counted_alike, shared};
use super::block::Pair;
use super::contract::{check_other_outputs, check_prefix_cache};
use super::excluded_benches::{ExcludedBenches, Fails, compiled_away, is_answer, who_fails};
use super::iterations::divide;
use super::one_core::Spent;
use super::pairs::{AIM, Pairs};
use super::planning::{self, first_pairs, pair_ns};
use super::started::{only_in_base, only_in_head, start};
use super::windows::Levels;
use super::{Order, PairedRequest, PairedRun, Shard, TurnTokens, Worker, Workers};
use crate::suite::fitting;
use infergate_core::case::Case;
use infergate_core::clock::{Clock, MonotonicClock};
use infergate_core::engine::Pacing;
use infergate_core::progress::Progress;
use infergate_core::receipt::limits::MAX_PAIRED_CASES;
use infergate_core::stats::robust_std;
use infergate_core::worker::{Launcher, PreparedReply, WorkerError, WorkerFile, ensure_not};
use infergate_judge::output::{OutputComparison, compare, default_tolerance};
use infergate_receipts::{PAIRED_SCHEMA, PairedCase, PairedReceipt, ShareRecord, Side, SideRecord, Took, timestamp};

/// The pilot samples a case for so long, or for its share of the second.
const PILOT_NS: f64 = 3e9;
const PILOT_OF_ALL_NS: f64 = 3e10;

/// Loads both sides, compares their outputs and plans the blocks: what head cannot do is a failed run, what only base cannot do is not
/// comparable. A bench that fails is named and excluded; where a process may have ended by it, the pilot starts again without it.
pub fn run<'a>(
    request: &'a PairedRequest,
    progress: &mut dyn FnMut(&Progress),
    cancelled: &'a AtomicBool,
) -> Result<PairedRun<'a>, WorkerError> {
    let clock = MonotonicClock::new();
    let mut excluded = ExcludedBenches::default();
    loop {
        if let Some(mut run) = attempt(request, &clock, &mut excluded, progress, cancelled)? {
            excluded.note(request, &mut run.receipt);
            return Ok(run);
        }
    }
}

/// `None` where one more bench was excluded, and the processes have to be started again.
fn attempt<'a>(
    request: &'a PairedRequest,
    clock: &MonotonicClock,
    excluded: &mut ExcludedBenches,
    progress: &mut dyn FnMut(&Progress),
    cancelled: &'a AtomicBool,
) -> Result<Option<PairedRun<'a>>, WorkerError> {
    let mut say = |label: &str| progress(&Progress { label: label.to_owned(), done_steps: 0, total_steps: 1 });
    say("pilot: loading head");
    let mut head = start(request, Side::Head, excluded, cancelled)?;
    say("pilot: loading base");
    let mut base = start(request, Side::Base, excluded, cancelled)?;
    ensure_same_model(&base.record, &head.record)?;
    let cases = fitting(&request.cases, request.memory_case, head.record.engine.context_tokens, &head.benches);
    let mut cases = cases.map_err(|error| only_in_base(request, &head.benches, &base.benches, error))?;
    let suite_cases = request.only.as_ref().map_or(cases.len(), Vec::len) + request.elsewhere;
    // Of several bench targets it is said which cases.
    match &request.only {
        Some(only) => cases.retain(|case| only.contains(case)),
        None => cases = of_shard(request.shard, cases)?,
    }
    let is_share = request.shard.is_some_and(|shard| shard.of > 1);
    let benches = shared(&request.cases, cases, (&head.benches, &base.benches), is_share)?;
    let unmatched = benches.only_in_head.len() + benches.only_in_base.len();
    (head.record.unmatched, base.record.unmatched) = (benches.only_in_head, benches.only_in_base);
    let mut asked = benches.cases;
    asked.retain(|case| !excluded.has(*case));
    let share = share(request, suite_cases);
    ensure_few(share.map_or(asked.len() + unmatched, |_| suite_cases))?;
    let mut cases = Vec::new();
    for case in asked {
        ensure_not(cancelled)?;
        say(&format!("pilot: {case}"));
        let in_head = match head.client.prepare(case, None) {
            Ok(in_head) => in_head,
            Err(error) => {
                let in_base = base.client.prepare(case, None).err();
                let fails = if in_base.is_some() { Fails::Both } else { Fails::HeadAlone };
                let live_on = is_answer(&error) && in_base.as_ref().is_none_or(is_answer);
                excluded.exclude(request, case, error.about(case).of("head"), fails)?;
                if live_on {
                    continue;
                }
                return Ok(None);
            }
        };
        // Both read the same text, so that their numbers can be compared at every position.
        let in_base = match base.client.prepare_beside(case, &in_head.output) {
            Ok(in_base) => in_base,
            Err(error) => {
                let lives_on = is_answer(&error);
                let error = only_in_head(error, &format!("run {case}"));
                excluded.exclude(request, case, error, Fails::BaseAlone)?;
                if lives_on {
                    continue;
                }
                return Ok(None);
            }
        };
        ensure_counted_alike(case, &in_base, &in_head)?;
        for client in [&head.client, &base.client] {
            excluded.longest = client.timeouts().prepared(case).unwrap_or_default().max(excluded.longest);
        }
        base.outputs.push(in_base);
        head.outputs.push(in_head);
        cases.push(case);
    }
    if !is_share {
        excluded.ensure_some_left(request, &cases)?;
    }

    let stepwise = [&base, &head].iter().all(|started| started.record.engine.pacing == Pacing::Stepwise);
    let mut turn_tokens = TurnTokens::new();
    let mut pairs = Pairs::new(request.share_of_time);
    let mut planned = Vec::new();
    let mut sampling_ns = 0.0;
    let mut pair = Pair { base: base.client, head: head.client, nth: 0, last_asked: Side::Head };
    let pilot_ns = PILOT_NS.min(PILOT_OF_ALL_NS * request.share_of_time / cases.len() as f64);
    let mut levels = Levels::new(request.under_load.as_ref());
    let tolerance = request.drift_tolerance.unwrap_or_else(|| default_tolerance(&base.record.engine));
    let is_timed = |(case, (base, head)): (&Case, (&PreparedReply, &PreparedReply))| {
        let is_meant = request.allow_output_change || request.accepts_output(*case);
        let comparison = || compare(&base.output, &head.output, tolerance).comparison;
        (is_meant || comparison() != OutputComparison::Changed) && !request.is_same_code()
    };
    let timed: Vec<bool> = cases.iter().zip(base.outputs.iter().zip(&head.outputs)).map(is_timed).collect();
    // First: samples are sized by the faster side, and one that only looks a prompt up would have the other read it for minutes.
    say("pilot: reading new prompts");
    let of_timed = cases.iter().zip(&timed).filter(|(_, timed)| **timed).map(|(case, _)| *case);
    let mut notes = request.notes.clone();
    let of_cache = check_prefix_cache(&mut pair, of_timed)?;
    for (at, &case) in cases.iter().enumerate() {
        say(&format!("pilot: {case}"));
        let mut plan = PairedCase {
            id: case,
            threshold: request.threshold,
            widest: request.threshold,
            pairs: 0,
            iterations_per_sample: 1,
            warm_up: false,
            one_core: false,
            base_output: base.outputs[at].output.clone(),
            head_output: head.outputs[at].output.clone(),
            timed: timed[at],
            expected_std: None,
            mean: None,
            throughput: head.outputs[at].throughput,
            load: None,
        };
        if let Some(cost_ns) = if plan.timed { levels.plan(&mut pair, &mut plan)? } else { None } {
            sampling_ns += cost_ns;
        } else if plan.timed {
            let before = Spent::so_far(pair.processes());
            let seen = divide(&mut pair, &mut plan, stepwise, &mut turn_tokens).and_then(|()| {
                plan.one_core = Spent::so_far(pair.processes()).is_one_thread_since(&before);
                first_pairs(&plan, stepwise, pilot_ns, &MonotonicClock::new(), |pairs| {
                    pair.measure(&PairedCase { pairs, ..plan.clone() }, Side::Base, &turn_tokens)
                })
            });
            let seen = match seen {
                Ok((seen, cost)) => {
                    compiled_away(&plan, &seen).map_or(Ok((seen, cost)), |error| Err((error, Fails::Both)))
                }
                Err(error) => {
                    let fails = who_fails(&mut pair, plan.clone(), &error);
                    Err((error, fails))
                }
            };
            let (seen, cost) = match seen {
                Ok(seen) => seen,
                Err((error, fails)) => {
                    excluded.exclude(request, case, error, fails)?;
                    return Ok(None);
                }
            };
            pairs.cost(case, cost);
            let logs = seen.log_ratios().unwrap_or_default();
            pairs.plan(case, pair_ns(&seen) * cost, robust_std(&logs).unwrap_or(AIM));
            sampling_ns += planning::decide(&mut plan, &seen, cost, stepwise, cases.len(), request);
        }
        planned.push(plan);
    }
    // Twice the whole output was computed here: nothing a block asks for takes longer.
    let outputs = |replies: &[PreparedReply]| {
        cases.iter().zip(replies).map(|(case, reply)| (*case, reply.output.ids.clone())).collect()
    };
    let workers = Workers {
        base: Worker { file: base.file, timeouts: pair.base.timeouts().clone(), outputs: outputs(&base.outputs) },
        head: Worker { file: head.file, timeouts: pair.head.timeouts().clone(), outputs: outputs(&head.outputs) },
    };
    let context_tokens = head.record.engine.context_tokens.min(base.record.engine.context_tokens);
    let other = check_other_outputs(&mut pair, &cases, context_tokens, request, cancelled, &mut say)?;
    notes.extend(other.notes.into_iter().chain(of_cache));
    // Two models at once might not fit into memory.
    drop(pair);
    let took_ns = clock.now_ns();
    let room_ns = |fixed_ns| planning::room_ns(request, share, &planned, took_ns, fixed_ns);
    let starts_ns = planning::starts_ns(
        head.start_ns + base.start_ns,
        room_ns(0.0).filter(|_| !request.quick && planned.iter().any(|case| case.timed)),
        || {
            say("pilot: loading once more");
            let start_ns = |side| Ok::<_, WorkerError>(start(request, side, excluded, cancelled)?.start_ns);
            Ok::<_, WorkerError>(start_ns(Side::Head)? + start_ns(Side::Base)?)
        },
    )?;
    let planned_ns = pairs.block_ns(&planned);
    if let Some(room_ns) = room_ns(sampling_ns - planned_ns + starts_ns as f64) {
        planning::fit(&mut pairs, &mut planned, room_ns, request);
        sampling_ns -= planned_ns - pairs.block_ns(&planned);
    }
    let receipt = PairedReceipt {
        schema: PAIRED_SCHEMA.into(),
        created: timestamp(),
        partial: false,
        out_of_time: false,
        invalid: Vec::new(),
        broken: other.broken,
        tool: env!("CARGO_PKG_VERSION").into(),
        machine: head.machine,
        base: base.record,
        head: head.record,
        threads: request.load.threads,
        seed: request.load.seed,
        cases: planned,
        other_lengths: other.lengths,
        took: Took::default(),
        blocks: Vec::new(),
        memory: None,
        alike: None,
        code: request.code.clone(),
        terms: request.terms.clone(),
        built_with: request.built_with.clone(),
        notes,
        servers: (!request.base.servers.is_empty()).then_some(request.base.servers.len()),
        share,
        explained: Vec::new(),
        allocated: Vec::new(),
    };
    let with = |file: &WorkerFile, server: &Launcher| file.clone().behind(server.clone());
    let servers = request.base.servers.iter().zip(&request.head.servers);
    let servers =
        servers.map(|(base, head)| (with(&workers.base.file, base), with(&workers.head.file, head))).collect();
    Ok(Some(PairedRun {
        request,
        cancelled,
        clock: clock.clone(),
        unbudgeted_ns: 0,
        receipt,
        workers,
        servers,
        turn_tokens,
        order: Order::new(request.load.seed),
        pairs,
        alike: None,
        starts_ns,
        block_ns: sampling_ns as u64 + starts_ns,
        in_budget: None,
    }))
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
