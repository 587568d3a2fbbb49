//! Verify the output, warm up, take raw samples.

use std::fmt;

use anyhow::{Result, ensure};

use crate::case::{Case, Phase};
use crate::clock::Clock;
use crate::engine::{Engine, TokenId};
use crate::receipt::{Output, TtftParts, Work, output_sha256};

/// An engine that never rewinds is started anew after this many steps of a decode case, so that the context stays near P.
const MAX_DRIFT_TOKENS: usize = 16;

/// The run breaks an invariant: it is invalid, with this reason, and gives no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantBroken(pub String);

impl fmt::Display for InvariantBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvariantBroken {}

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

/// Computes the greedy output of `case` twice, which also warms up, and refuses an engine that does not repeat itself.
///
/// # Errors
/// When the case does not fit the context, the engine fails, or the two outputs differ.
pub fn prepare(engine: &mut dyn Engine, case: Case, prompt: Vec<TokenId>) -> Result<Prepared> {
    case.ensure_fits(engine.info().context_tokens)?;
    ensure!(
        prompt.len() == case.prompt_tokens(),
        "{case}: the prompt has {} tokens instead of {}",
        prompt.len(),
        case.prompt_tokens()
    );
    let output = output(engine, &prompt, case.output_tokens())?;
    let again = output_ids(engine, &prompt, case.output_tokens())?;
    if let Some(at) = first_difference(&output.ids, &again) {
        return Err(unrepeatable(case, at));
    }
    let work = work(engine, case);
    Ok(Prepared { case, prompt, output, work })
}

fn output(engine: &mut dyn Engine, prompt: &[TokenId], tokens: usize) -> Result<Output> {
    let mut ids = vec![engine.start(prompt)?];
    let mut top2_margins = vec![engine.top2_margin()];
    while ids.len() < tokens {
        ids.push(engine.next()?);
        top2_margins.push(engine.top2_margin());
    }
    Ok(Output { sha256: output_sha256(&ids), ids, top2_margins })
}

fn output_ids(engine: &mut dyn Engine, prompt: &[TokenId], tokens: usize) -> Result<Vec<TokenId>> {
    let mut ids = vec![engine.start(prompt)?];
    while ids.len() < tokens {
        ids.push(engine.next()?);
    }
    Ok(ids)
}

fn unrepeatable(case: Case, at: usize) -> anyhow::Error {
    InvariantBroken(format!(
        "{case}: output token {} is not the same in every run of the same prompt; a time without a repeatable output means nothing, make the engine deterministic",
        at + 1
    ))
    .into()
}

/// The first index at which two outputs differ, their lengths included.
pub fn first_difference(a: &[TokenId], b: &[TokenId]) -> Option<usize> {
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    common.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}

fn work(engine: &dyn Engine, case: Case) -> Option<Work> {
    let cost = engine.cost()?;
    let p = case.prompt_tokens();
    Some(match case {
        Case::Prefill { .. } => Work { bytes: 0.0, flops: cost.prefill_flops(p) },
        Case::Decode { .. } => Work { bytes: cost.decode_bytes(p), flops: 0.0 },
        Case::Generate { output_tokens, .. } => Work {
            bytes: (0..output_tokens.saturating_sub(1)).map(|step| cost.decode_bytes(p + step)).sum(),
            flops: cost.prefill_flops(p),
        },
    })
}

/// Takes samples of one prepared case. Cache resets and prompt set-up happen between the timed regions.
pub struct Sampler<'a> {
    engine: &'a mut dyn Engine,
    clock: &'a dyn Clock,
    prepared: &'a Prepared,
    /// Decode only: steps since the engine stood at the prompt's end; `None` when it does not stand there.
    drift_tokens: Option<usize>,
    /// Decode only: the token the engine must give next.
    tokens: Vec<TokenId>,
}

impl<'a> Sampler<'a> {
    /// A sampler for `prepared`; nothing runs yet.
    pub fn new(engine: &'a mut dyn Engine, clock: &'a dyn Clock, prepared: &'a Prepared) -> Self {
        let tokens = Vec::with_capacity(prepared.case.output_tokens());
        Self { engine, clock, prepared, drift_tokens: None, tokens }
    }

    /// One iteration: `t_k - t_0` in nanoseconds for each token of the timed region (one for prefill and decode, N for
    /// generate).
    ///
    /// # Errors
    /// When the engine fails, or says something else than when it was prepared.
    pub fn sample(&mut self) -> Result<Vec<u64>> {
        match self.prepared.case.phase() {
            Phase::Prefill | Phase::Generate => self.sample_from_start(),
            Phase::Decode => self.sample_step(),
        }
    }

    fn sample_from_start(&mut self) -> Result<Vec<u64>> {
        let tokens = self.prepared.case.output_tokens();
        let mut token_ns = Vec::with_capacity(tokens);
        self.tokens.clear();
        let start_ns = self.clock.now_ns();
        let first = self.engine.start(&self.prepared.prompt)?;
        token_ns.push(self.clock.now_ns() - start_ns);
        self.tokens.push(first);
        while token_ns.len() < tokens {
            let token = self.engine.next()?;
            token_ns.push(self.clock.now_ns() - start_ns);
            self.tokens.push(token);
        }
        self.ensure_same_output()?;
        Ok(token_ns)
    }

    fn sample_step(&mut self) -> Result<Vec<u64>> {
        self.stand_at_prompt_end()?;
        let start_ns = self.clock.now_ns();
        let token = self.engine.next()?;
        let step_ns = self.clock.now_ns() - start_ns;
        // Only the step straight after the prompt has a known token; later ones belong to an engine that cannot rewind.
        if self.drift_tokens == Some(0) {
            self.tokens.truncate(1);
            self.tokens.push(token);
            self.ensure_same_output()?;
        }
        self.drift_tokens = self.drift_tokens.map(|steps| steps + 1);
        Ok(vec![step_ns])
    }

    fn stand_at_prompt_end(&mut self) -> Result<()> {
        if let Some(drift) = self.drift_tokens {
            if self.engine.rewind()? {
                self.drift_tokens = Some(0);
                return Ok(());
            }
            let room = self.engine.info().context_tokens.saturating_sub(self.prepared.prompt.len() + 2);
            if drift < MAX_DRIFT_TOKENS.min(room) {
                return Ok(());
            }
        }
        self.tokens.clear();
        self.tokens.push(self.engine.start(&self.prepared.prompt)?);
        self.drift_tokens = Some(0);
        Ok(())
    }

    fn ensure_same_output(&self) -> Result<()> {
        if let Some(at) = first_difference(&self.prepared.output.ids, &self.tokens) {
            return Err(unrepeatable(self.prepared.case, at));
        }
        Ok(())
    }
}

/// Time to first token in parts, from `text` where the engine has a tokenizer. `load_ns` makes it a cold one.
///
/// # Errors
/// When the engine fails.
pub fn ttft_parts(
    engine: &mut dyn Engine,
    clock: &dyn Clock,
    prompt: &[TokenId],
    load_ns: Option<u64>,
) -> Result<TtftParts> {
    // The text whose tokens the prompt is; cutting it can merge or split a token at the very end, so only its time is used.
    let text = engine.detokenize(prompt)?;
    let tokenize_ns = match &text {
        Some(text) => {
            let start_ns = clock.now_ns();
            engine.tokenize(text)?;
            Some(clock.now_ns() - start_ns)
        }
        None => None,
    };
    let start_ns = clock.now_ns();
    engine.start(prompt)?;
    let start_call_ns = clock.now_ns() - start_ns;
    let first_sample_ns = engine.first_sample_ns().map(|ns| ns.min(start_call_ns));
    Ok(TtftParts {
        prompt_tokens: prompt.len(),
        load_ns,
        tokenize_ns,
        prefill_ns: start_call_ns - first_sample_ns.unwrap_or(0),
        first_sample_ns,
    })
}
