//! The contract check: any engine can be run through it, from its own repository's tests.

use anyhow::{Context, Result, bail, ensure};
use infergate_core::prompt::seeded_ids;

use super::{Engine, EngineInfo, Event, Pacing, RequestId, Scheduler, TokenId};

/// Tokens the check generates after each prompt.
const OUTPUT_TOKENS: usize = 6;

/// A prompt that is longer than this is not made to see it refused: it would take the memory.
const MOST_CONTEXT_TOKENS: usize = 1 << 24;

/// A prompt read at once and one read token by token may round differently: closer than this either may win.
const NEAR_TIE_LOGITS: f32 = 0.01;

/// Runs `engine` through every rule of [`Engine`] that can be seen from outside. Leaves it with a short sequence started.
///
/// Uses prompts of up to 12 tokens with ids below [`EngineInfo::vocab_tokens`](super::EngineInfo::vocab_tokens), and one
/// over-long prompt that must be refused, where the context is of no more than 16 million tokens.
///
/// # Errors
/// The first rule that is broken, in one line.
pub fn check_contract(engine: &mut dyn Engine) -> Result<()> {
    let info = engine.info();
    if let Some(what) = info.unsound() {
        bail!("info: {what}");
    }
    ensure!(info.vocab_tokens > 0, "info: vocab_tokens must be above zero");
    ensure!(info.context_tokens > 20, "info: a context of {} tokens is too short to check", info.context_tokens);
    ensure!(engine.info() == info, "info: two calls differ; it must always be the same");
    if let Some(cost) = engine.cost() {
        let amounts = [
            cost.decode_bytes_fixed,
            cost.decode_bytes_per_context_token,
            cost.prefill_flops_per_token,
            cost.prefill_flops_per_pair,
        ];
        let is_amount = |amount: &f64| amount.is_finite() && *amount >= 0.0;
        ensure!(amounts.iter().all(is_amount), "cost: each amount must be a number from zero, not {amounts:?}");
    }

    let (a, b) = (seeded_ids(12, 1, info.vocab_tokens), seeded_ids(5, 2, info.vocab_tokens));
    let first = generate(engine, &a)?;
    ensure!(
        first.iter().all(|&t| (t as usize) < info.vocab_tokens),
        "next: a token is outside the vocabulary of {}",
        info.vocab_tokens
    );
    ensure!(
        generate(engine, &a)? == first,
        "start: the same prompt twice gave different tokens; decoding must be greedy"
    );
    generate(engine, &b)?;
    ensure!(
        generate(engine, &a)? == first,
        "start: after another prompt the same prompt gave different tokens; start must forget what came before"
    );

    let restarted = engine.start(&a)?;
    ensure!(restarted == first[0], "start: gave another first token after an unfinished sequence");
    check_last_step(engine, restarted, info.vocab_tokens)?;
    let second = engine.next()?;
    check_last_step(engine, second, info.vocab_tokens)?;
    if engine.rewind().context("rewind failed after start and one step")? {
        ensure!(engine.next()? == second, "rewind: the step after it differs from the step after start");
        engine.next()?;
        engine.rewind()?;
        ensure!(engine.next()? == second, "rewind: must work again after more steps");
    }
    check_force(engine, &a, &first, info.vocab_tokens)?;

    ensure!(engine.start(&[]).is_err(), "start: an empty prompt must be an error");
    let context_tokens = info.context_tokens;
    ensure!(
        context_tokens > MOST_CONTEXT_TOKENS
            || engine.start(&seeded_ids(context_tokens + 1, 3, info.vocab_tokens)).is_err(),
        "start: a prompt beyond the context of {context_tokens} must be an error"
    );
    ensure!(generate(engine, &a)? == first, "start: after a refused request the same prompt gave different tokens");

    if let Ok(mut fork) = engine.fork() {
        engine.start(&a)?;
        generate(fork.as_mut(), &b)?;
        ensure!(engine.next()? == second, "fork: running the second sequence changed the first");
        ensure!(generate(fork.as_mut(), &a)? == first, "fork: the second sequence gives other tokens than the first");
    }
    if let Ok(mut scheduler) = engine.scheduler(2) {
        let alone = generate(engine, &b)?;
        check_scheduler(scheduler.as_mut(), [&a, &b], [&first, &alone], &info)?;
    }
    if let Some(ids) = engine.tokenize("Hello")? {
        ensure!(!ids.is_empty(), "tokenize: gave no token for \"Hello\"");
    }
    Ok(())
}

fn generate(engine: &mut dyn Engine, prompt: &[TokenId]) -> Result<Vec<TokenId>> {
    let mut tokens = vec![engine.start(prompt).context("start failed on a prompt that fits")?];
    while tokens.len() < OUTPUT_TOKENS {
        tokens.push(engine.next().context("next failed though the context has room")?);
    }
    Ok(tokens)
}

/// What an engine says beside `token` must fit it.
fn check_last_step(engine: &dyn Engine, token: TokenId, vocab_tokens: usize) -> Result<()> {
    if let Some(step) = engine.last_step() {
        ensure!(step.token == token, "last_step: says token {}, and {token} was given", step.token);
        ensure!(step.margin.is_none_or(|margin| margin >= 0.0), "last_step: a margin below zero");
    }
    let mut logits = Vec::new();
    if engine.logits(&mut logits) {
        ensure!(
            logits.len() == vocab_tokens,
            "logits: gave {} of them for a vocabulary of {vocab_tokens}",
            logits.len()
        );
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        ensure!(
            logits.get(token as usize).is_some_and(|logit| *logit == largest),
            "logits: token {token} was given, and its logit is not the largest"
        );
    }
    Ok(())
}

/// A forced token is appended in place of the engine's own, and nothing of it stays.
fn check_force(engine: &mut dyn Engine, prompt: &[TokenId], first: &[TokenId], vocab_tokens: usize) -> Result<()> {
    engine.start(prompt)?;
    if !engine.force(first[0]).context("force failed after start")? {
        return Ok(());
    }
    ensure!(engine.next()? == first[1], "force: the engine's own token, forced, changed the next one");
    // A prompt one token longer must say the same as that token forced behind a shorter one.
    let other = (first[0] + 1) % TokenId::try_from(vocab_tokens)?;
    let expected = engine.start(&[prompt, &[other]].concat())?;
    let margin = engine.last_step().and_then(|step| step.margin);
    let near_tie = margin.is_some_and(|margin| margin < NEAR_TIE_LOGITS);
    engine.start(prompt)?;
    engine.force(other)?;
    ensure!(near_tie || engine.next()? == expected, "force: the forced token was not the one that was appended");
    ensure!(generate(engine, prompt)? == first, "force: start must forget a forced token");
    Ok(())
}

/// `alone` is what the engine says to each prompt when it is the only one.
fn check_scheduler(
    scheduler: &mut dyn Scheduler,
    prompts: [&[TokenId]; 2],
    alone: [&[TokenId]; 2],
    info: &EngineInfo,
) -> Result<()> {
    let context_tokens = info.context_tokens;
    let run = |scheduler: &mut dyn Scheduler, tokens: usize| run(scheduler, tokens, info.pacing);
    ensure!(scheduler.capacity() >= 2, "scheduler: room for {} where 2 were requested", scheduler.capacity());
    ensure!(scheduler.step()?.is_empty(), "step: gave a token though nothing is in flight");
    ensure!(scheduler.submit(&[], 1).is_err(), "submit: an empty prompt must be an error");
    ensure!(scheduler.submit(prompts[0], 0).is_err(), "submit: zero output tokens must be an error");
    ensure!(
        scheduler.submit(prompts[0], context_tokens).is_err(),
        "submit: a request beyond the context of {context_tokens} must be an error"
    );
    // The second one joins while the first one runs.
    let first = scheduler.submit(prompts[0], OUTPUT_TOKENS).context("submit failed though every slot is free")?;
    let mut events = run(scheduler, 1)?;
    let second = scheduler.submit(prompts[1], OUTPUT_TOKENS).context("submit failed though a slot is free")?;
    ensure!(first != second, "submit: gave the same request id twice");
    while scheduler.in_flight() < scheduler.capacity() {
        scheduler.submit(prompts[1], OUTPUT_TOKENS).context("submit failed though a slot is free")?;
    }
    ensure!(
        scheduler.submit(prompts[1], 1).is_err(),
        "submit: took more than the {} requests there is room for",
        scheduler.capacity()
    );
    events.extend(run(scheduler, usize::MAX)?);
    for (request, alone) in [(first, alone[0]), (second, alone[1])] {
        check_events(&events, request, alone)?;
    }

    let given_up = scheduler.submit(prompts[0], OUTPUT_TOKENS)?;
    let kept = scheduler.submit(prompts[1], OUTPUT_TOKENS)?;
    let mut events = run(scheduler, 3)?;
    let before = scheduler.in_flight();
    ensure!(scheduler.cancel(given_up), "cancel: does not know a request that is in flight");
    ensure!(scheduler.in_flight() + 1 == before, "cancel: did not free the slot");
    ensure!(!scheduler.cancel(given_up), "cancel: a request that was cancelled is still in flight");
    let late = run(scheduler, usize::MAX)?;
    ensure!(late.iter().all(|event| event.request != given_up), "cancel: the request got a token afterwards");
    events.extend(late);
    check_events(&events, kept, alone[1]).context("after another request was cancelled")?;
    ensure!(!scheduler.cancel(kept), "cancel: a request that ended is still in flight");
    Ok(())
}

/// Steps until at least so many tokens came or nothing is in flight.
fn run(scheduler: &mut dyn Scheduler, tokens: usize, pacing: Pacing) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    while events.len() < tokens && scheduler.in_flight() > 0 {
        let more = scheduler.step().context("step failed though the context has room")?;
        if more.is_empty() && pacing == Pacing::Stepwise {
            bail!("step: gave no token though {} requests are in flight", scheduler.in_flight());
        }
        events.extend(more);
    }
    Ok(events)
}

fn check_events(events: &[Event], request: RequestId, alone: &[TokenId]) -> Result<()> {
    let own: Vec<&Event> = events.iter().filter(|event| event.request == request).collect();
    ensure!(own.len() == alone.len(), "step: gave {} tokens where {} were requested", own.len(), alone.len());
    for (at, (event, token)) in own.iter().zip(alone).enumerate() {
        ensure!(event.token == *token, "step: token {} differs from the one the engine gives alone", at + 1);
        ensure!(event.index == at, "step: token {} says that its index is {}", at + 1, event.index);
        ensure!(event.finished == (at + 1 == alone.len()), "step: token {} is wrong about being the last", at + 1);
    }
    Ok(())
}
