//! An output that the engine says twice, and the numbers behind it.

use anyhow::{Result, ensure};

use super::ensure_same;
use crate::engine::{Engine, TokenId};
use infergate_core::case::Case;
use infergate_core::receipt::{FINGERPRINT_POSITIONS, Fingerprint, Output, output_sha256};

/// The greedy output of `case`, computed twice. The second time the numbers behind it are kept, at 16 positions or
/// more; an engine that can then follows `feed`, the output of another one, so that both were asked about the same text.
pub fn take(engine: &mut dyn Engine, case: Case, prompt: &[TokenId], feed: Option<&[TokenId]>) -> Result<Output> {
    let tokens = case.output_tokens();
    let (ids, top2_margins) = greedy(engine, prompt, tokens)?;
    let room = engine.info().context_tokens.saturating_sub(prompt.len());
    let positions = tokens.max(FINGERPRINT_POSITIONS.min(room));
    let (said, fingerprint) = follow(engine, prompt, tokens, positions, feed)?;
    let known = said.len().min(tokens);
    ensure_same(case, &ids[..known], &said[..known])?;
    if known < tokens {
        let (again, _) = greedy(engine, prompt, tokens)?;
        ensure_same(case, &ids, &again)?;
    }
    let prompt_sha256 = Some(output_sha256(prompt));
    Ok(Output { sha256: output_sha256(&ids), ids, top2_margins, fingerprint: Some(fingerprint), prompt_sha256 })
}

/// The engine's own output, and the margin behind each token.
fn greedy(engine: &mut dyn Engine, prompt: &[TokenId], tokens: usize) -> Result<(Vec<TokenId>, Vec<Option<f32>>)> {
    let margin = |engine: &dyn Engine| engine.last_step().and_then(|step| step.margin);
    let mut ids = vec![engine.start(prompt)?];
    let mut margins = vec![margin(engine)];
    while ids.len() < tokens {
        ids.push(engine.next()?);
        margins.push(margin(engine));
    }
    Ok((ids, margins))
}

/// The fingerprint over `positions` tokens, and what the engine said for as long as it was fed its own words.
fn follow(
    engine: &mut dyn Engine,
    prompt: &[TokenId],
    tokens: usize,
    positions: usize,
    feed: Option<&[TokenId]>,
) -> Result<(Vec<TokenId>, Fingerprint)> {
    let (mut said, mut path, mut fingerprint) = (Vec::new(), Vec::new(), Fingerprint::default());
    let mut logits = Vec::new();
    let mut own_words = true;
    for position in 0..positions {
        let token = if position == 0 { engine.start(prompt)? } else { engine.next()? };
        if own_words {
            said.push(token);
        }
        if is_kept(position, positions) && engine.logits(&mut logits) {
            ensure!(
                !logits.is_empty(),
                "Engine::logits gave no numbers at token {position}; give those of the step, or return false"
            );
            fingerprint.add(position, &logits);
        }
        if position + 1 < positions {
            let wanted = feed.and_then(|feed| feed.get(position)).copied().unwrap_or(token);
            let follows = wanted != token && engine.force(wanted)?;
            own_words &= !follows;
            path.push(if follows { wanted } else { token });
        }
    }
    fingerprint.more_ids = if own_words { said[tokens..].to_vec() } else { Vec::new() };
    fingerprint.fed = (!own_words).then_some(path);
    Ok((said, fingerprint))
}

/// Whether the numbers at `position` are kept: 16 of `positions`, evenly spread, the first and the last among them.
fn is_kept(position: usize, positions: usize) -> bool {
    let spread = |nth: usize| nth * (positions - 1) / (FINGERPRINT_POSITIONS - 1);
    positions <= FINGERPRINT_POSITIONS || (0..FINGERPRINT_POSITIONS).any(|nth| spread(nth) == position)
}
