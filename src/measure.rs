//! Verify the output, warm up, take raw samples.

mod output;
mod prompt;
mod reread;
mod sampler;
mod untimed;

use anyhow::{Result, ensure};

use crate::engine::{Engine, TokenId};
use infergate_core::case::Case;
use infergate_core::clock::Clock;
pub use infergate_core::engine::first_difference;
pub use infergate_core::outcome::InvariantBroken;
use infergate_core::receipt::{Output, TtftParts, Work, output_sha256};

pub use prompt::{ensure_reads, fixed_prompt};
pub use reread::reread;
pub use sampler::{Sampler, iterations_per_sample};
#[cfg(feature = "bench")]
pub(crate) use untimed::is_untimed;
pub(crate) use untimed::untimed;

/// Tokens of a known output that a further process of the same run computes to warm up.
const WARM_UP_TOKENS: usize = 8;

/// One case on one engine, output verified, ready to be timed.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The case.
    pub case: Case,
    /// Its prompt, exactly P tokens.
    pub prompt: Vec<TokenId>,
    /// What the engine says to it, the same twice.
    pub output: Output,
    /// The least work of one sample, where the engine knows it.
    pub work: Option<Work>,
}

impl Prepared {
    /// Refuses an output that is not this one.
    pub(crate) fn ensure_same(&self, ids: &[TokenId]) -> Result<()> {
        ensure_same(self.case, &self.output.ids, ids)
    }
}

/// Computes the greedy output of `case` twice, which also warms up, and refuses an engine that does not repeat itself.
///
/// `feed` is the [path](Output::path) of another engine's output to follow while the fingerprint is taken, so that the numbers of both can
/// be compared at every position. An engine that cannot be [forced](Engine::force) follows its own words.
///
/// # Errors
/// When the case does not fit the context, the engine fails, or the two outputs differ.
pub fn prepare(
    engine: &mut dyn Engine,
    case: Case,
    prompt: Vec<TokenId>,
    feed: Option<&[TokenId]>,
) -> Result<Prepared> {
    case.ensure_fits(engine.info().context_tokens)?;
    let output = output::take(engine, case, &prompt, feed)?;
    let work = work(engine, case);
    Ok(Prepared { case, prompt, output, work })
}

/// As [`prepare`], for a further process that must say what an earlier one said: it only warms up, on the beginning of the
/// output, and every sample is compared with the whole of it.
///
/// # Errors
/// As [`prepare`], or when the beginning differs.
pub fn prepare_known(
    engine: &mut dyn Engine,
    case: Case,
    prompt: Vec<TokenId>,
    known: Vec<TokenId>,
) -> Result<Prepared> {
    ensure!(
        known.len() == case.output_tokens(),
        "{case}: the known output has {} tokens instead of {}",
        known.len(),
        case.output_tokens()
    );
    let warm = known.len().min(WARM_UP_TOKENS);
    let begun = output_ids(engine, &prompt, warm)?;
    ensure_same(case, &known[..warm], &begun)?;
    let work = work(engine, case);
    let prompt_sha256 = Some(output_sha256(&prompt));
    let output = Output { sha256: output_sha256(&known), ids: known, prompt_sha256, ..Output::default() };
    Ok(Prepared { case, prompt, output, work })
}

pub(crate) fn output_ids(engine: &mut dyn Engine, prompt: &[TokenId], tokens: usize) -> Result<Vec<TokenId>> {
    let mut ids = vec![engine.start(prompt)?];
    while ids.len() < tokens {
        ids.push(engine.next()?);
    }
    Ok(ids)
}

/// Refuses an output that is not the known one.
fn ensure_same(case: Case, known: &[TokenId], ids: &[TokenId]) -> Result<()> {
    first_difference(known, ids).map_or(Ok(()), |at| Err(unrepeatable(case, at)))
}

fn unrepeatable(case: Case, at: usize) -> anyhow::Error {
    InvariantBroken(format!(
        "{case}: output token {} is not the same in every run of the same prompt; a time without a repeatable output means nothing, make the engine deterministic",
        at + 1
    ))
    .into()
}

fn work(engine: &dyn Engine, case: Case) -> Option<Work> {
    let cost = engine.cost()?;
    let p = case.prompt_tokens();
    let (reads_prompt, steps) = match case {
        Case::Prefill { .. } => (true, 0),
        Case::Decode { .. } => (false, 1),
        Case::Generate { output_tokens, .. } => (true, output_tokens.saturating_sub(1)),
        Case::Bench(_) => return None,
    };
    let flops = if reads_prompt { cost.prefill_flops(p) } else { 0.0 };
    // `sum` of no step is -0.0, which a file would show.
    let bytes = (p..p + steps).map(|context| cost.decode_bytes(context)).fold(0.0, |sum, of_step| sum + of_step);
    // What an engine cannot do in no time says nothing of the hardware.
    let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
    (is_amount(bytes) && is_amount(flops)).then_some(Work { bytes, flops })
}

/// What a cold start has before its prompt is read.
#[derive(Debug, Clone, Copy)]
pub struct Cold {
    /// Model load.
    pub load_ns: u64,
    /// As [`first_tokenize_ns`].
    pub tokenize_ns: Option<u64>,
}

/// The time of tokenizing a part of `text` of about so many tokens, nanoseconds; `None` without a tokenizer. Asked before anything else
/// is tokenized it is that of a cold start, which compiles expressions and fills caches. How many tokens a text has is known only
/// behind it, so four characters are taken for one.
///
/// # Errors
/// When the tokenizer fails.
pub fn first_tokenize_ns(engine: &dyn Engine, clock: &dyn Clock, text: &str, tokens: usize) -> Result<Option<u64>> {
    let part: String = text.chars().cycle().take(tokens.saturating_mul(4)).collect();
    tokenize_ns(engine, clock, &part)
}

fn tokenize_ns(engine: &dyn Engine, clock: &dyn Clock, text: &str) -> Result<Option<u64>> {
    let start_ns = clock.now_ns();
    let ids = engine.tokenize(text)?;
    Ok(ids.map(|_| clock.now_ns() - start_ns))
}

/// Time to first token in parts, from text where the engine has a tokenizer; with `cold` that of a cold start.
///
/// # Errors
/// When the engine fails.
pub fn ttft_parts(
    engine: &mut dyn Engine,
    clock: &dyn Clock,
    prompt: &[TokenId],
    cold: Option<Cold>,
) -> Result<TtftParts> {
    let (load_ns, tokenize_ns) = match cold {
        Some(cold) => (Some(cold.load_ns), cold.tokenize_ns),
        // The text whose tokens the prompt is; cutting it can merge or split a token at the very end, so only its time is used.
        None => {
            let text = engine.detokenize(prompt)?;
            (None, text.map_or(Ok(None), |text| tokenize_ns(engine, clock, &text))?)
        }
    };
    let start_ns = clock.now_ns();
    engine.start(prompt)?;
    let start_call_ns = clock.now_ns() - start_ns;
    let first_sample_ns = engine.last_step().and_then(|step| step.sample_ns).map(|ns| ns.min(start_call_ns));
    Ok(TtftParts {
        prompt_tokens: prompt.len(),
        load_ns,
        tokenize_ns,
        prefill_ns: start_call_ns - first_sample_ns.unwrap_or(0),
        first_sample_ns,
    })
}
