//! Checks what docs/reference/engine.md requires of an engine beyond its cases, once a gate in the pilot's processes: it computes a prompt
//! again that it has just read, serves requests together as it serves each alone, and gives base's output at prompt lengths that no case
//! has.

use std::time::{Duration, Instant};

use super::PairedRequest;
use super::excluded_benches::{can_be_the_benchs_fault, worker_survives};
use super::process_pair::PrepareFailure::{Base, Both, Head};
use super::process_pair::ProcessPair;
use infergate_build::progress;
use infergate_core::case::{Case, Phase};
use infergate_core::load::{Arrivals, LevelPlan, RequestShape, Stop};
use infergate_core::worker::{Capability, Client, WorkerError};
use infergate_receipts::{FINGERPRINT_POSITIONS, Note, OtherLength, PairedReceipt, Side};

/// The fewest tokens of a prompt that is read again: a shorter prompt takes hardly longer than the first token of a longer one.
const LEAST_REREAD_TOKENS: usize = 16;
/// The number of new prompts in each trial of reading again. A trial follows only if all before it showed a cache.
const REREAD_PROMPTS: [usize; 3] = [1, 2, 5];

/// The lengths of two prompts that are served together, tokens. They differ, so that no step has both at the same position.
const BATCH_TOKENS: [usize; 2] = [5, 37];

/// Prompt lengths at which outputs are compared, tokens: the shortest prompt with a past, and lengths that no block size divides.
const LENGTHS: [usize; 4] = [2, 37, 101, 333];
/// One more prompt reaches to the end of the context, or of this many tokens of it.
const MOST_CONTEXT_TOKENS: usize = 1024;
/// All these prompts together may take the budget / this.
const PART_OF_BUDGET: u32 = 10;
/// The time limit of an answer / its expected time.
const MOST_TIMES_EXPECTED: f64 = 20.0;
/// The shortest time limit of an answer.
const LEAST_LIMIT: Duration = Duration::from_secs(60);

/// Samples read the same prompt again and again: with a prefix cache their times would be those of the cache. Gives a note if base has one
/// and head has none: that cannot make head faster. Must run before samples are sized by the faster side.
///
/// # Errors
/// [`WorkerError::Invalid`] if head has one; a worker that died, hangs or breaks the protocol.
pub fn check_prefix_cache(pair: &mut ProcessPair, timed: impl Iterator<Item = Case>) -> Result<Vec<Note>, WorkerError> {
    let reads = |case: &Case| matches!(case.phase(), Phase::Prefill | Phase::Generate);
    let mut cases: Vec<Case> = timed.filter(|case| case.prompt_tokens() >= LEAST_REREAD_TOKENS).filter(reads).collect();
    // A cache of whole blocks keeps no prompt that is shorter than one, and a small one none that is long. The short one first: new
    // prompts of the long one begin as those of the short one.
    cases.sort_by_key(Case::prompt_tokens);
    cases.dedup_by_key(|case| case.prompt_tokens());
    let longest = cases.get(1..).and_then(<[Case]>::last).copied();
    let mut notes = Vec::new();
    for case in cases.first().copied().into_iter().chain(longest) {
        let mut answers = |side: Side| {
            let times = times_as_fast(pair.client(side), case).map_err(|error| error.of(side.name()))?;
            let text = |times| {
                format!(
                    "{} answers a prompt of {case} that it has just read {times:.1} times as fast as a new one",
                    side.name()
                )
            };
            Ok::<_, WorkerError>(times.map(text))
        };
        let (head, base) = (answers(Side::Head)?, answers(Side::Base)?);
        if let Some(head) = head {
            let both = base.map(|base| format!("; {base}")).unwrap_or_default();
            let text = format!("{head}{both}; Engine::start has to compute it anew (docs/reference/engine.md)");
            return Err(WorkerError::Invalid(text));
        }
        notes.extend(base.map(|base| Note::from(format!("{base}: its times are those of its cache"))));
    }
    Ok(notes)
}

/// How many times as fast a known prompt is, in the trial that shows least. `None` if it is not faster in every trial, or the side cannot
/// tell.
fn times_as_fast(client: &mut Client<'_>, case: Case) -> Result<Option<f64>, WorkerError> {
    if !client.can(Capability::Reread) {
        return Ok(None);
    }
    let (mut least, mut skip) = (f64::INFINITY, 0);
    for count in REREAD_PROMPTS {
        let trial = match client.reread(case, count, skip) {
            Ok(trial) => trial,
            // A prompt of few different tokens has no new ones, and an engine may take no other.
            Err(WorkerError::Refused(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(times) = trial.times_as_fast() else { return Ok(None) };
        (least, skip) = (least.min(times), skip + count);
    }
    Ok(Some(least))
}

/// Sends both sides two requests at once, and prompts of other lengths, and writes into the receipt how their outputs differ. Must run
/// after everything that the pilot times, since a request may end a process. Of several shards only the first checks this.
///
/// # Errors
/// The user ended the run, or the run itself failed.
pub fn check_other_outputs(
    pair: &mut ProcessPair,
    receipt: &mut PairedReceipt,
    context_tokens: usize,
    request: &PairedRequest,
    show: &mut dyn FnMut(&str),
) -> Result<(), WorkerError> {
    let is_wanted = request.check_other_outputs && !request.quick && request.shard.index == 0;
    let cases: Vec<Case> = receipt.cases.iter().map(|case| case.id).collect();
    if !is_wanted || cases.is_empty() || cases.iter().any(|case| case.phase() == Phase::Bench) {
        return Ok(());
    }
    if !request.is_same_code() && plan(0).validate(context_tokens).is_ok() {
        show("pilot: two requests together");
        if check_batch(pair, receipt, request)? {
            let text = "outputs of other prompt lengths were not compared: a process ended at two requests at once";
            receipt.notes.push(Note::from(text));
            return Ok(());
        }
    }
    check_lengths(pair, receipt, &cases, context_tokens, request, show)
}

/// What a side does with two requests at once, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Batch {
    AsAlone,
    /// It serves one at a time, or cannot begin.
    Refused,
    Wrong,
    /// It gives no answer.
    Failed,
    /// Its process died, hangs or breaks the protocol.
    Ended,
}

/// Head fails if it does worse with two requests at once than base. So an engine that serves one at a time may continue to do so. A near
/// tie, or a race, can give another token once: so head fails only if other prompts show it, too. Gives whether a process ended.
fn check_batch(
    pair: &mut ProcessPair,
    receipt: &mut PairedReceipt,
    request: &PairedRequest,
) -> Result<bool, WorkerError> {
    let mut worse: Vec<(Batch, String)> = Vec::new();
    let (mut is_shown, mut has_ended) = (false, false);
    for seed in [request.load.seed, request.load.seed ^ 1] {
        progress::ensure_not_cancelled()?;
        let (in_head, why) = serve(&mut pair.head, &plan(seed))?.unwrap_or((Batch::AsAlone, String::new()));
        let of_base = if in_head == Batch::AsAlone { None } else { serve(&mut pair.base, &plan(seed))? };
        // If base cannot be tried, head's fault may be base's, too.
        let in_base = of_base.map_or(in_head, |(in_base, _)| in_base);
        has_ended = in_head == Batch::Ended || in_base == Batch::Ended;
        if in_head <= in_base {
            if worse.is_empty() && in_head > Batch::Refused {
                let text = format!("head fails at two requests at once, and base may, too: {why}");
                receipt.notes.push(Note::from(text));
            }
            break;
        }
        is_shown = has_ended || !worse.is_empty();
        worse.push((in_head, why));
        if has_ended {
            break;
        }
    }
    let Some((batch, why)) = worse.into_iter().max_by_key(|(batch, _)| *batch) else { return Ok(has_ended) };
    let is_allowed = request.allow_output_change && batch == Batch::Wrong;
    if is_shown && !is_allowed {
        receipt.broken.push(format!("only head fails at two requests at once: {why}"));
    } else {
        let times = if is_shown { "" } else { ", in one of two tries" };
        receipt.notes.push(Note::from(format!("only head fails at two requests at once{times}: {why}")));
    }
    Ok(has_ended)
}

/// Compares outputs at other prompt lengths: a mask, a tail or a table of positions can be wrong at some lengths alone.
fn check_lengths(
    pair: &mut ProcessPair,
    receipt: &mut PairedReceipt,
    cases: &[Case],
    context_tokens: usize,
    request: &PairedRequest,
    show: &mut dyn FnMut(&str),
) -> Result<(), WorkerError> {
    // Both sides take at least as much longer for a longest prompt as that is longer.
    let token_s = cases.iter().max_by_key(|case| case.prompt_tokens()).map_or(0.0, |longest| {
        let took = pair.head.timeouts.prepared(*longest).unwrap_or_default();
        took.as_secs_f64() / longest.prompt_tokens() as f64
    });
    let (begun, room_s) = (Instant::now(), request.budget.map(|budget| (budget / PART_OF_BUDGET).as_secs_f64()));
    let mut not_compared: Vec<(usize, String)> = Vec::new();
    for prompt_tokens in lengths(cases, context_tokens) {
        progress::ensure_not_cancelled()?;
        let expected_s = 2.0 * token_s * prompt_tokens as f64;
        if room_s.is_some_and(|room_s| expected_s > room_s - begun.elapsed().as_secs_f64()) {
            not_compared.push((prompt_tokens, "they would take more than a tenth of the budget".into()));
            continue;
        }
        // A path that hangs at some lengths gets a shorter limit than the first run of a suite.
        let limit = Duration::from_secs_f64(MOST_TIMES_EXPECTED * expected_s).max(LEAST_LIMIT);
        [&mut pair.base, &mut pair.head].into_iter().for_each(|client| client.timeouts.first_of_case = Some(limit));
        show(&format!("pilot: prompt of {prompt_tokens} tokens"));
        let id = Case::Prefill { prompt_tokens };
        let failure = match pair.outputs(id) {
            Ok((base, head)) => {
                receipt.other_lengths.push(OtherLength { id, base_output: base.output, head_output: head.output });
                continue;
            }
            Err(failure) => failure,
        };
        let why = match failure {
            Head(error) | Base(error) | Both(error, _) | Both(_, error) if !can_be_the_benchs_fault(&error) => {
                return Err(error);
            }
            Head(error) => {
                receipt.broken.push(format!("{id}: head alone cannot run it: {error}"));
                break;
            }
            Base(error) | Both(_, error) if !worker_survives(&error) => {
                let why = format!("a process ended, so longer prompts were not tried ({error})");
                not_compared.push((prompt_tokens, why));
                break;
            }
            Both(error, _) if !worker_survives(&error) => {
                receipt.broken.push(format!("{id}: base refuses it, head ends: {error}"));
                break;
            }
            Both(error, _) => format!("head and base cannot run them ({error})"),
            Base(error) => format!("base cannot run them ({error})"),
        };
        not_compared.push((prompt_tokens, why));
    }
    if let Some((_, why)) = not_compared.first() {
        let lengths: Vec<String> = not_compared.iter().map(|(tokens, _)| tokens.to_string()).collect();
        let text = format!("the outputs of prompts of {} tokens were not compared: {why}", lengths.join(", "));
        receipt.notes.push(Note::from(text));
    }
    Ok(())
}

/// What a side does with `plan`, and why. `None` if its infergate cannot serve requests together.
fn serve(client: &mut Client<'_>, plan: &LevelPlan) -> Result<Option<(Batch, String)>, WorkerError> {
    if !client.can(Capability::LoadLevel) {
        return Ok(None);
    }
    Ok(Some(match client.load_level(plan) {
        Ok(level) => level.batch.cut_short.map_or((Batch::AsAlone, String::new()), |why| (Batch::Failed, why)),
        Err(WorkerError::Refused(why)) => (Batch::Refused, why),
        Err(WorkerError::Invalid(why)) => (Batch::Wrong, why),
        Err(error @ WorkerError::Interrupted(_)) => return Err(error),
        Err(error) => (Batch::Ended, error.to_string()),
    }))
}

fn plan(seed: u64) -> LevelPlan {
    let shape =
        |prompt_tokens| RequestShape { prompt_tokens, output_tokens: FINGERPRINT_POSITIONS, shared_prefix_tokens: 0 };
    let requests = BATCH_TOKENS.len() as u32;
    LevelPlan {
        arrivals: Arrivals::Closed { users: requests },
        stop: Stop::Requests { count: u64::from(requests) },
        warm_up_requests: 0,
        slots: requests,
        scenarios: BATCH_TOKENS.map(shape).to_vec(),
        turns: 1,
        turn_tokens: 0,
        seed,
        compared: 2 * requests,
    }
}

/// The lengths that no case has and after which the context has room for all positions of a fingerprint.
fn lengths(cases: &[Case], context_tokens: usize) -> Vec<usize> {
    let room = context_tokens.min(MOST_CONTEXT_TOKENS).saturating_sub(FINGERPRINT_POSITIONS + 1);
    let mut lengths: Vec<usize> = LENGTHS.into_iter().filter(|length| *length < room).chain([room]).collect();
    lengths.retain(|length| *length > 0 && cases.iter().all(|case| case.prompt_tokens() != *length));
    lengths
}
