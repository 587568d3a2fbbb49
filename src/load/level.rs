//! One level on an engine: its requests driven, and some of their outputs compared with what the prompt gives alone.

use anyhow::Result;

use super::{Ask, Driven, drive};
use crate::engine::{Engine, TokenId};
use crate::measure::{InvariantBroken, first_difference, output_ids};
use infergate_core::clock::Clock;
use infergate_core::engine::default_tolerance;
use infergate_core::load::{BatchRecord, LevelPlan, LoadLevel, MOST_ANSWER_BYTES};

/// A token is chosen by rounding where the margin is below this part of what all numbers may drift by: in bf16 1.6 % of the logit, two or
/// three steps of such a number.
const OF_TOLERANCE: f64 = 0.25;

/// Runs `plan` on a scheduler of `engine`, on `clock`, then computes some of the outputs alone.
///
/// # Errors
/// A plan that does not fit, an engine without a scheduler, [`InvariantBroken`] where the output of a request is not what its
/// prompt gives alone, up to a near tie. An engine that fails under the load is a part of the answer.
pub fn run_level(engine: &mut dyn Engine, clock: &dyn Clock, plan: &LevelPlan) -> Result<LoadLevel> {
    let info = engine.info();
    plan.validate(info.context_tokens)?;
    let mut scheduler = engine.scheduler(usize::try_from(plan.slots)?)?;
    let mut left_bytes = MOST_ANSWER_BYTES;
    let mut full = false;
    let mut ask = |request: u64| {
        let shape = plan.shape(request)?;
        let Some(left) = left_bytes.checked_sub(shape.answer_bytes()) else {
            full = true;
            return None;
        };
        left_bytes = left;
        let scenario = u32::try_from(plan.scenario(request)).unwrap_or(u32::MAX);
        Some(Ask { prompt: plan.prompt(request, info.vocab_tokens), output_tokens: shape.output_tokens, scenario })
    };
    let driven = drive(scheduler.as_mut(), clock, plan, &mut ask)?;
    let (batches, kv_bytes_per_request) = (scheduler.batches(), scheduler.kv_bytes_per_request());
    // Its caches may be needed for what is computed alone.
    drop(scheduler);
    // What an engine says after it failed is no evidence of anything.
    let compared = if driven.failure.is_none() { compare(engine, plan, &driven)? } else { 0 };
    let limit = || format!("the level's records reached {} MiB; run shorter levels", MOST_ANSWER_BYTES >> 20);
    Ok(LoadLevel {
        steady: driven.steady,
        records: driven.records,
        batch: BatchRecord {
            slots: plan.slots,
            largest_batch: driven.largest_batch as u32,
            batches,
            kv_bytes_per_request,
            compared,
            cut_short: driven.failure.or_else(|| full.then(limit)),
        },
    })
}

/// Whether the engine alone had `said` at token `at` so close behind its own choice that rounding decides: another order of the same sums
/// can give the other one. Known of an engine that gives its logits.
fn is_near_tie(engine: &mut dyn Engine, prompt: &[TokenId], at: usize, said: TokenId) -> Result<bool> {
    let own = output_ids(engine, prompt, at + 1)?[at];
    let mut logits = Vec::new();
    if !engine.logits(&mut logits) {
        return Ok(false);
    }
    let logit = |token: TokenId| logits.get(token as usize).copied().filter(|logit| logit.is_finite()).map(f64::from);
    let rounds = OF_TOLERANCE * default_tolerance(&engine.info());
    Ok(logit(own).zip(logit(said)).is_some_and(|(own, said)| own - said <= rounds * own.abs().max(said.abs())))
}

/// Computes some completed requests, evenly spread over the level, alone. How many there were.
fn compare(engine: &mut dyn Engine, plan: &LevelPlan, driven: &Driven) -> Result<u32> {
    let vocab_tokens = engine.info().vocab_tokens;
    let completed: Vec<usize> =
        (0..driven.records.len()).filter(|place| driven.records[*place].failure.is_none()).collect();
    let wanted = usize::try_from(plan.compared)?.min(completed.len());
    for turn in 0..wanted {
        let place = completed[(2 * turn + 1) * completed.len() / (2 * wanted)];
        let (output, prompt) = (&driven.outputs[place], plan.prompt(place as u64, vocab_tokens));
        let alone = output_ids(engine, &prompt, output.len())?;
        let Some(at) = first_difference(output, &alone) else { continue };
        if !is_near_tie(engine, &prompt, at, output[at])? {
            let text = format!(
                "request {place}: output token {} differs from the one that its prompt gets alone; a batch must not change answers, so fix the scheduler",
                at + 1
            );
            return Err(InvariantBroken(text).into());
        }
    }
    Ok(u32::try_from(wanted)?)
}
