//! The contract check: any engine can be run through it, from its own repository's tests.

use anyhow::{Context, Result, ensure};

use super::{Engine, TokenId};

/// Tokens the check generates after each prompt.
const OUTPUT_TOKENS: usize = 6;

/// Runs `engine` through every rule of [`Engine`] that can be seen from outside. Leaves it with a short sequence started.
///
/// Uses prompts of up to 12 tokens with ids below [`EngineInfo::vocab_tokens`](super::EngineInfo::vocab_tokens), and one
/// over-long prompt that must be refused.
///
/// # Errors
/// The first rule that is broken, in one line.
pub fn check_contract(engine: &mut dyn Engine) -> Result<()> {
    let info = engine.info();
    ensure!(!info.name.is_empty() && !info.model.is_empty(), "info: name and model must not be empty");
    ensure!(info.vocab_tokens > 0, "info: vocab_tokens must be above zero");
    ensure!(info.context_tokens > 20, "info: a context of {} tokens is too short to check", info.context_tokens);
    ensure!(engine.info() == info, "info: two calls differ; it must always be the same");

    let (a, b) = (prompt(12, 1, info.vocab_tokens), prompt(5, 2, info.vocab_tokens));
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
    let second = engine.next()?;
    if engine.rewind().context("rewind failed after start and one step")? {
        ensure!(engine.next()? == second, "rewind: the step after it differs from the step after start");
        engine.next()?;
        engine.rewind()?;
        ensure!(engine.next()? == second, "rewind: must work again after more steps");
    }

    check_refusals(engine, info.context_tokens, info.vocab_tokens)?;
    ensure!(generate(engine, &a)? == first, "start: after a refused request the same prompt gave different tokens");

    if let Ok(mut fork) = engine.fork() {
        engine.start(&a)?;
        generate(fork.as_mut(), &b)?;
        ensure!(engine.next()? == second, "fork: running the second sequence changed the first");
        ensure!(generate(fork.as_mut(), &a)? == first, "fork: the second sequence gives other tokens than the first");
    }
    if let Some(ids) = engine.tokenize("Hello")? {
        ensure!(!ids.is_empty(), "tokenize: gave no token for \"Hello\"");
    }
    Ok(())
}

fn check_refusals(engine: &mut dyn Engine, context_tokens: usize, vocab_tokens: usize) -> Result<()> {
    ensure!(engine.start(&[]).is_err(), "start: an empty prompt must be an error");
    ensure!(
        engine.start(&prompt(context_tokens + 1, 3, vocab_tokens)).is_err(),
        "start: a prompt beyond the context of {context_tokens} must be an error"
    );
    Ok(())
}

fn generate(engine: &mut dyn Engine, prompt: &[TokenId]) -> Result<Vec<TokenId>> {
    let mut tokens = vec![engine.start(prompt).context("start failed on a prompt that fits")?];
    while tokens.len() < OUTPUT_TOKENS {
        tokens.push(engine.next().context("next failed though the context has room")?);
    }
    Ok(tokens)
}

fn prompt(len: usize, seed: u64, vocab_tokens: usize) -> Vec<TokenId> {
    crate::prompt::seeded_ids(len, seed, vocab_tokens)
}
