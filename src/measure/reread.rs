//! Whether an engine computes a prompt anew that it has just read: samples read the same one again and again.

use std::collections::HashSet;

use anyhow::{Result, ensure};

use crate::engine::{Engine, TokenId};
use infergate_core::clock::Clock;

/// What [`Engine::start`] takes, nanoseconds: of `prompt`, right after it was read, and of new prompts, `count` of each in turn. The
/// first `skip` of the new ones are left out, since they were read before.
///
/// # Errors
/// When the engine fails, or too few new prompts can be made.
pub fn reread(
    engine: &mut dyn Engine,
    clock: &dyn Clock,
    prompt: &[TokenId],
    count: usize,
    skip: usize,
) -> Result<(Vec<u64>, Vec<u64>)> {
    let new: Vec<Vec<TokenId>> = turned(prompt).skip(skip).take(count).collect();
    ensure!(new.len() == count, "the prompt has too few different tokens to make new prompts of it");
    let (mut known_ns, mut new_ns) = (Vec::new(), Vec::new());
    for new in &new {
        engine.start(prompt)?;
        known_ns.push(start_ns(engine, clock, prompt)?);
        new_ns.push(start_ns(engine, clock, new)?);
    }
    Ok((known_ns, new_ns))
}

/// The same tokens from another place on: each begins with another token, and with none that another begins with.
fn turned(prompt: &[TokenId]) -> impl Iterator<Item = Vec<TokenId>> {
    let mut first: HashSet<TokenId> = prompt.first().copied().into_iter().collect();
    let at = (0..prompt.len()).filter(move |at| first.insert(prompt[*at]));
    at.map(|at| [&prompt[at..], &prompt[..at]].concat())
}

fn start_ns(engine: &mut dyn Engine, clock: &dyn Clock, prompt: &[TokenId]) -> Result<u64> {
    let start_ns = clock.now_ns();
    engine.start(prompt)?;
    Ok(clock.now_ns() - start_ns)
}
