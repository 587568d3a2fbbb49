//! The pilot: compares outputs, checks what docs/reference/engine.md requires, and sizes samples and blocks. It can end the run as invalid.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;

use super::benches::benches_of_both;
use super::engine_checks::{check_other_outputs, check_prefix_cache};
use super::excluded_benches::{ExcludedBenches, Fails, compiled_away, who_fails, worker_survives};
use super::iterations::size_samples;
use super::one_core::CpuTimes;
use super::pairs::{PairPlan, first_pairs};
use super::process_pair::{PrepareFailure, ProcessPair};
use super::started::{Started, base_cannot, head_lacks_bench, start};
use super::{PairedRequest, PairedRun, StartOrder, of_shard, windows};
use crate::suite::fitting;
use infergate_build::progress;
use infergate_core::case::Case;
use infergate_core::clock::{Clock, MonotonicClock};
use infergate_core::engine::Pacing;
use infergate_core::progress::Progress;
use infergate_core::receipt::limits::MAX_PAIRED_CASES;
use infergate_core::worker::{PreparedReply, WorkerError};
use infergate_judge::output::{OutputComparison, compare, default_tolerance};
use infergate_judge::paired::fewest_to_fail;
use infergate_receipts::{
    BlockCase, PAIRED_SCHEMA, PairedCase, PairedReceipt, Side, SideRecord, SuiteShard, timestamp,
};

/// The longest time that the pilot samples a case (ns).
const PILOT_NS: f64 = 3e9;
/// The longest time that it samples all cases (ns).
const PILOT_OF_ALL_NS: f64 = 3e10;
/// The largest part of a budget that it samples all cases for, as a fraction.
const PILOT_OF_BUDGET: f64 = 0.2;

/// Blocks that a budget is planned for, in addition to the fewest that can fail a slow case: few blocks show it only if all agree.
const BLOCKS_TO_SPARE: usize = 4;

impl<'a> PairedRun<'a> {
    /// Runs the pilot: loads both sides, compares their outputs, checks what docs/reference/engine.md requires, and sizes samples and
    /// blocks. A bench that fails is named and excluded; if its process may have ended, the pilot starts again without it.
    ///
    /// # Errors
    /// As [`crate::suite::run`]; [`WorkerError::Invalid`] if head breaks a requirement; [`WorkerError::NotComparable`] if base cannot run
    /// what head can, or loads another model.
    pub fn begin(request: &'a PairedRequest, progress: &mut dyn FnMut(&Progress)) -> Result<Self, WorkerError> {
        let clock = MonotonicClock::default();
        let mut excluded = ExcludedBenches::default();
        let mut show = |label: &str| progress(&Progress { label: label.to_owned(), done_steps: 0, total_steps: 1 });
        loop {
            if let Some(mut run) = attempt(request, &clock, &mut excluded, &mut show)? {
                excluded.note(request, &mut run.receipt);
                return Ok(run);
            }
        }
    }
}

/// One start of the pilot. `None` if one more bench was excluded, and the processes have to be started again.
fn attempt<'a>(
    request: &'a PairedRequest,
    clock: &MonotonicClock,
    excluded: &mut ExcludedBenches,
    show: &mut dyn FnMut(&str),
) -> Result<Option<PairedRun<'a>>, WorkerError> {
    show("pilot: loading head");
    let mut head = start(request, Side::Head)?;
    show("pilot: loading base");
    let mut base = start(request, Side::Base)?;
    ensure_same_model(&base.record, &head.record)?;
    // The verdict names a context that became shorter.
    let context_tokens = base.record.engine.context_tokens.min(head.record.engine.context_tokens);
    let (chosen, share) = choose(request, &mut base, &mut head, excluded, context_tokens)?;
    let engines = [&base.record.engine, &head.record.engine];
    let mut pilot = Pilot {
        request,
        clock,
        stepwise: engines.iter().all(|engine| engine.pacing == Pacing::Stepwise),
        tolerance: request.drift_tolerance.unwrap_or_else(|| default_tolerance(engines[0])),
        pair: ProcessPair { base: base.client, head: head.client, nth: 0, last_side: Side::Head },
        pairs: PairPlan::new(request.share_of_time),
    };
    let Some(mut cases) = pilot.compare_outputs(chosen, excluded, show)? else { return Ok(None) };
    if cases.is_empty() && share.is_none_or(|share| share.of == 1) {
        excluded.nothing_left(request)?;
    }
    // Before samples are sized by the faster side: if that one looks its answers up, the other side would compute for minutes.
    show("pilot: reading new prompts");
    let of_cache = check_prefix_cache(&mut pilot.pair, cases.iter().filter(|case| case.timed).map(|case| case.id))?;
    let Some(levels_ns) = pilot.take_samples(&mut cases, excluded, show)? else { return Ok(None) };
    let Pilot { mut pair, mut pairs, .. } = pilot;
    // The pilot computed each whole output twice: nothing in a block takes longer.
    let timeouts = (pair.base.timeouts.clone(), pair.head.timeouts.clone());
    let mut builds = Vec::new();
    for (of_base, of_head) in request.base.servers.iter().zip(&request.head.servers) {
        builds.push((base.file.clone().behind(of_base.clone()), head.file.clone().behind(of_head.clone())));
    }
    let mut receipt = PairedReceipt {
        schema: PAIRED_SCHEMA.into(),
        created: timestamp(),
        tool: env!("CARGO_PKG_VERSION").into(),
        machine: head.machine,
        base: base.record,
        head: head.record,
        threads: request.load.threads,
        seed: request.load.seed,
        cases,
        code: request.code.clone(),
        terms: request.terms.clone(),
        built_with: request.built_with.clone(),
        notes: [&request.notes[..], &of_cache].concat(),
        servers: Some(builds.len()).filter(|count| *count > 0),
        share,
        ..PairedReceipt::default()
    };
    check_other_outputs(&mut pair, &mut receipt, context_tokens, request, show)?;
    // Two models at once might not fit into memory.
    drop(pair);
    // The first start of both may have fetched the model, or filled the system's cache of its file.
    let starts_ns = 2 * base.start_ns.min(head.start_ns);
    let left = request.budget.map(|budget| budget.saturating_sub(Duration::from_nanos(clock.now_ns())));
    let suite = share.map_or(receipt.cases.len(), |share| share.suite_cases);
    let room_of = |left: Duration| {
        let block_ns = left.as_nanos() as f64 / (fewest_to_fail(suite) + BLOCKS_TO_SPARE) as f64;
        block_ns - levels_ns - starts_ns as f64
    };
    let room_ns = if request.quick { Some(0.0) } else { left.map(room_of) };
    if let Some(room_ns) = room_ns {
        pairs.reduce_to(&mut receipt.cases, room_ns, &request.limits);
    }
    let block_ns = (levels_ns + pairs.block_ns(&receipt.cases, 1)) as u64 + starts_ns;
    if builds.is_empty() {
        builds.push((base.file, head.file));
    }
    Ok(Some(PairedRun {
        request,
        clock: clock.clone(),
        unbudgeted_ns: 0,
        receipt,
        builds,
        start_files: None,
        timeouts,
        order: StartOrder::new(request.load.seed),
        pairs,
        starts_ns,
        starts_all_placements: true,
        block_ns,
        cases_in_budget: None,
    }))
}

/// Both sides while the blocks are planned.
struct Pilot<'a> {
    request: &'a PairedRequest,
    clock: &'a MonotonicClock,
    /// Neither engine computes between two calls.
    stepwise: bool,
    /// How far logits may drift and still be the same output, as a fraction.
    tolerance: f64,
    pair: ProcessPair,
    pairs: PairPlan,
}

impl Pilot<'_> {
    /// The cases that both sides run, not sized yet; those whose output changed are not timed. `None` if a bench was excluded that may have
    /// ended its process.
    fn compare_outputs(
        &mut self,
        chosen: Vec<Case>,
        excluded: &mut ExcludedBenches,
        show: &mut dyn FnMut(&str),
    ) -> Result<Option<Vec<PairedCase>>, WorkerError> {
        let mut cases = Vec::new();
        for case in chosen {
            progress::ensure_not_cancelled()?;
            show(&format!("pilot: {case}"));
            let begun_ns = self.clock.now_ns();
            match self.pair.outputs(case) {
                Ok((in_base, in_head)) => {
                    // Both sides of a block prepare at the same time.
                    self.pairs.note_preparation(case, (self.clock.now_ns() - begun_ns) as f64 / 2.0);
                    ensure_counted_alike(case, &in_base, &in_head)?;
                    cases.push(self.compared(case, in_base, in_head));
                }
                Err(failure) => {
                    let (fails, lives_on, error) = match failure {
                        PrepareFailure::Head(error) => {
                            (Fails::HeadAlone, worker_survives(&error), error.about(case).of("head"))
                        }
                        PrepareFailure::Base(error) => {
                            (Fails::BaseAlone, worker_survives(&error), base_cannot(error, &format!("run {case}")))
                        }
                        PrepareFailure::Both(error, in_base) => (
                            Fails::Both,
                            worker_survives(&error) && worker_survives(&in_base),
                            error.about(case).of("head"),
                        ),
                    };
                    excluded.exclude(self.request, case, error, fails)?;
                    if !lives_on {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(cases))
    }

    fn compared(&self, id: Case, in_base: PreparedReply, in_head: PreparedReply) -> PairedCase {
        let threshold = self.request.limits.threshold;
        let is_meant = self.request.allow_output_change || self.request.accepts_output(id);
        let is_changed =
            || compare(&in_base.output, &in_head.output, self.tolerance).comparison == OutputComparison::Changed;
        PairedCase {
            id,
            threshold,
            widest: threshold,
            pairs: 0,
            iterations_per_sample: 1,
            warm_up: false,
            one_core: false,
            turn_tokens: None,
            timed: !self.request.is_same_code() && (is_meant || !is_changed()),
            base_output: in_base.output,
            head_output: in_head.output,
            expected_std: None,
            mean: None,
            throughput: in_head.throughput,
            load: None,
        }
    }

    /// Sizes the samples of the timed cases, and takes some. Gives the time that levels of load add to a block, nanoseconds; `None` as
    /// [`compare_outputs`](Self::compare_outputs).
    fn take_samples(
        &mut self,
        cases: &mut [PairedCase],
        excluded: &mut ExcludedBenches,
        show: &mut dyn FnMut(&str),
    ) -> Result<Option<f64>, WorkerError> {
        let (request, count) = (self.request, cases.len());
        let (mut levels, mut levels_ns) = (BTreeMap::new(), 0.0);
        let of_budget_ns = request.budget.map_or(PILOT_OF_ALL_NS, |budget| PILOT_OF_BUDGET * budget.as_nanos() as f64);
        let of_all_ns = of_budget_ns.min(PILOT_OF_ALL_NS * request.share_of_time);
        let pilot_ns = PILOT_NS.min(of_all_ns / count as f64);
        for plan in cases.iter_mut().filter(|case| case.timed) {
            show(&format!("pilot: {}", plan.id));
            if let Some(cost_ns) = windows::plan(&mut self.pair, plan, request, &mut levels)? {
                levels_ns += cost_ns;
                continue;
            }
            match first_samples(&mut self.pair, plan, self.stepwise, pilot_ns) {
                Ok((seen, cost)) => self.pairs.plan(plan, &seen, cost, self.stepwise, count, &request.limits),
                Err((error, fails)) => {
                    excluded.exclude(request, plan.id, error, fails)?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(levels_ns))
    }
}

/// Sizes the samples of a case, and takes some pairs of it. Gives them and what one costs, as [`first_pairs`].
fn first_samples(
    pair: &mut ProcessPair,
    plan: &mut PairedCase,
    stepwise: bool,
    pilot_ns: f64,
) -> Result<(BlockCase, f64), (WorkerError, Fails)> {
    let before = CpuTimes::so_far(pair.processes());
    let seen = size_samples(pair, plan, stepwise).and_then(|()| {
        plan.one_core = CpuTimes::so_far(pair.processes()).is_one_thread_since(&before);
        first_pairs(plan, stepwise, pilot_ns, &MonotonicClock::default(), |pairs| {
            pair.measure(&PairedCase { pairs, ..plan.clone() }, Side::Base)
        })
    });
    match seen {
        Ok((seen, cost)) => compiled_away(plan, &seen).map_or(Ok((seen, cost)), |error| Err((error, Fails::Both))),
        Err(error) => Err((error, who_fails(pair, plan.clone()))),
    }
}

/// The cases that this run measures, and which shard of the suite they are.
fn choose(
    request: &PairedRequest,
    base: &mut Started,
    head: &mut Started,
    excluded: &ExcludedBenches,
    context_tokens: usize,
) -> anyhow::Result<(Vec<Case>, Option<SuiteShard>)> {
    let cases = fitting(&request.cases, request.memory_case, context_tokens, &head.benches);
    let mut cases = cases.map_err(|error| head_lacks_bench(request, &head.benches, &base.benches, error))?;
    let suite_cases = request.own_cases.as_ref().map_or(cases.len(), Vec::len) + request.cases_in_other_runs;
    // Several bench targets are divided before, as one suite.
    match &request.own_cases {
        Some(own) => cases.retain(|case| own.contains(case)),
        None => {
            let mine = of_shard(request.shard, &cases)?;
            cases.retain(|case| mine.contains(case));
        }
    }
    let (number, of) = (request.shard.index as usize + 1, request.shard.count as usize);
    let mut cases = benches_of_both(request, cases, base, head)?;
    cases.retain(|case| !excluded.has(*case));
    let share = (of > 1 || request.cases_in_other_runs > 0).then_some(SuiteShard { number, of, suite_cases });
    let all = cases.len() + head.record.unmatched.len() + base.record.unmatched.len();
    let all = share.map_or(all, |_| suite_cases);
    // The cases of a run share one level of evidence: with each further case, every case needs more.
    ensure!(
        all <= MAX_PAIRED_CASES,
        "{all} benches are more than the {MAX_PAIRED_CASES} that one gate compares; name those that matter with --cases"
    );
    Ok((cases, share))
}

/// Refuses other models or weights: times of two models are no comparison. The model of benches is the name of their program, which may
/// differ.
fn ensure_same_model(base: &SideRecord, head: &SideRecord) -> Result<(), WorkerError> {
    let (was, is) = (&base.engine, &head.engine);
    let weights = was.weights_sha256.as_ref().zip(is.weights_sha256.as_ref());
    let are_benches = was.is_of_benches() && is.is_of_benches();
    let reason = if was.model != is.model && !are_benches {
        format!("base loads the model '{}' and head '{}'", was.model, is.model)
    } else if weights.is_some_and(|(was, is)| was != is) {
        format!("base and head load other weights of {}", is.model)
    } else {
        return Ok(());
    };
    Err(WorkerError::NotComparable(format!("{reason}; compare like with like, or name one model with --model")))
}

/// Refuses sides whose times per token cannot be compared: one counts more tokens in the same text, or only one says how many an answer
/// has.
fn ensure_counted_alike(case: Case, was: &PreparedReply, is: &PreparedReply) -> Result<(), WorkerError> {
    let is_same_text = !was.output.ids.is_empty() && was.output.ids == is.output.ids;
    match (was.counted_tokens, is.counted_tokens) {
        (Some(was), Some(is)) if is_same_text && was != is => Err(WorkerError::NotComparable(format!(
            "{case}: base counts {was} tokens in the answer in which head counts {is} (its usage); make both say the same"
        ))),
        (Some(_), None) | (None, Some(_)) => {
            let (says, silent) = if is.counted_tokens.is_none() { ("base", "head") } else { ("head", "base") };
            Err(WorkerError::NotComparable(format!(
                "{case}: {says} says how many tokens an answer has (usage) and {silent} does not; make both say it"
            )))
        }
        _ => Ok(()),
    }
}
