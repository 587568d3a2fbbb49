//! [`CandleEngine`]: a [`Decoder`] as an [`Engine`]. Greedy decoding, context limits, text.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use candle_core::{CpuStorage, Storage, Tensor};

use crate::decoder::Decoder;
use crate::digest::Digest;
use crate::first_line;
use infergate::engine::{Cost, Engine, EngineInfo, RoundRobin, Scheduler, Step, TokenId, ensure_fits};

/// Text to tokens and back, without special tokens.
pub trait Tokenize: Send + Sync {
    /// Tokens of `text`.
    ///
    /// # Errors
    /// When it has no tokens for it.
    fn tokenize(&self, text: &str) -> Result<Vec<TokenId>>;

    /// Text of `tokens`.
    ///
    /// # Errors
    /// When there is none.
    fn detokenize(&self, tokens: &[TokenId]) -> Result<String>;
}

/// A model on candle with room for one sequence.
pub struct CandleEngine {
    decoder: Box<dyn Decoder>,
    text: Option<Arc<dyn Tokenize>>,
    pub(crate) info: EngineInfo,
    digest: Arc<Digest>,
    prompt_tokens: usize,
    first: Option<Step>,
    last: Option<Step>,
    /// What the next step appends.
    pending: Option<TokenId>,
    /// Behind the last step; empty where they are not known.
    logits: Vec<f32>,
}

impl CandleEngine {
    /// An engine over `decoder`. Of `info` the fields about weights and settings are filled in from `decoder` and `digest`.
    pub fn new(
        decoder: Box<dyn Decoder>,
        mut info: EngineInfo,
        text: Option<Arc<dyn Tokenize>>,
        digest: Digest,
    ) -> Self {
        let facts = decoder.facts();
        info.parameters = Some(facts.parameters);
        info.weight_bytes = Some(facts.weight_bytes);
        info.settings.extend(facts.settings);
        Self::over(decoder, info, text, Arc::new(digest))
    }

    fn over(decoder: Box<dyn Decoder>, info: EngineInfo, text: Option<Arc<dyn Tokenize>>, digest: Arc<Digest>) -> Self {
        Self {
            decoder,
            text,
            info,
            digest,
            prompt_tokens: 0,
            first: None,
            last: None,
            pending: None,
            logits: Vec::new(),
        }
    }

    /// Runs `tokens` and picks the best next token.
    fn step(&mut self, tokens: &[TokenId]) -> Result<Step> {
        (self.last, self.pending) = (None, None);
        self.logits.clear();
        let logits = self.decoder.forward(tokens).map_err(first_line)?;
        let sampling = Instant::now();
        copy(&logits, &mut self.logits)?;
        let (token, margin) = greedy(&self.logits)?;
        let step = Step { token, margin, sample_ns: Some(u64::try_from(sampling.elapsed().as_nanos())?) };
        (self.last, self.pending) = (Some(step), Some(token));
        Ok(step)
    }
}

impl Engine for CandleEngine {
    fn info(&self) -> EngineInfo {
        EngineInfo { weights_sha256: self.digest.sha256(), ..self.info.clone() }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure!(!prompt.is_empty(), "the prompt has no tokens; give at least one");
        ensure_fits(prompt.len() + 1, self.info.context_tokens)?;
        ensure_in_vocabulary(prompt, self.info.vocab_tokens)?;
        (self.first, self.last, self.pending) = (None, None, None);
        self.decoder.reset()?;
        let step = self.step(prompt)?;
        self.prompt_tokens = prompt.len();
        self.first = Some(step);
        Ok(step.token)
    }

    fn next(&mut self) -> Result<TokenId> {
        let Some(pending) = self.pending else { bail!("no sequence was started; call start first") };
        ensure_fits(self.decoder.cached_tokens() + 2, self.info.context_tokens)?;
        Ok(self.step(&[pending])?.token)
    }

    fn last_step(&self) -> Option<Step> {
        self.last
    }

    fn logits(&self, out: &mut Vec<f32>) -> bool {
        if self.logits.is_empty() {
            return false;
        }
        out.clone_from(&self.logits);
        true
    }

    fn force(&mut self, token: TokenId) -> Result<bool> {
        ensure!(self.pending.is_some(), "no sequence was started; call start first");
        ensure_in_vocabulary(&[token], self.info.vocab_tokens)?;
        self.pending = Some(token);
        Ok(true)
    }

    fn rewind(&mut self) -> Result<bool> {
        let possible = self.first.is_some() && self.decoder.truncate(self.prompt_tokens)?;
        if possible {
            (self.last, self.pending) = (self.first, self.first.map(|step| step.token));
            self.logits.clear();
        }
        Ok(possible)
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        self.text.as_ref().map(|t| t.tokenize(text)).transpose()
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        self.text.as_ref().map(|t| t.detokenize(tokens)).transpose()
    }

    fn cost(&self) -> Option<Cost> {
        Some(self.decoder.facts().cost)
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        let decoder = self.decoder.fork()?;
        Ok(Box::new(Self::over(decoder, self.info.clone(), self.text.clone(), self.digest.clone())))
    }

    fn scheduler(&self, requests: usize) -> Result<Box<dyn Scheduler + Send>> {
        match self.decoder.scheduler(requests) {
            Some(together) => together,
            None => Ok(Box::new(RoundRobin::of(self, requests)?)),
        }
    }
}

/// Refuses tokens that the model does not have.
pub(crate) fn ensure_in_vocabulary(tokens: &[TokenId], vocab: usize) -> Result<()> {
    match tokens.iter().find(|&&id| id as usize >= vocab) {
        Some(id) => bail!("token {id} is outside the model's vocabulary; ids are below {vocab}"),
        None => Ok(()),
    }
}

/// Appends logits to `out`, without an allocation of its own where `out` has been as long before.
pub(crate) fn copy(logits: &Tensor, out: &mut Vec<f32>) -> candle_core::Result<()> {
    let (storage, layout) = logits.storage_and_layout();
    match (&*storage, layout.contiguous_offsets()) {
        (Storage::Cpu(CpuStorage::F32(numbers)), Some((start, end))) => out.extend_from_slice(&numbers[start..end]),
        _ => out.extend(logits.to_vec1::<f32>()?),
    }
    Ok(())
}

/// The highest logit's index, the lowest index on ties, and how far the second lies behind it.
pub(crate) fn greedy(logits: &[f32]) -> Result<(TokenId, Option<f32>)> {
    let (mut best, mut best_logit, mut second_logit) = (None, f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (index, &logit) in logits.iter().enumerate() {
        ensure!(!logit.is_nan(), "the model gave NaN as a logit; its weights are damaged or the dtype is too narrow");
        if best.is_none() || logit > best_logit {
            (best, second_logit, best_logit) = (Some(index), best_logit, logit);
        } else if logit > second_logit {
            second_logit = logit;
        }
    }
    let Some(index) = best else { bail!("the model gave no logits; its vocabulary is empty") };
    let margin = best_logit - second_logit;
    Ok((TokenId::try_from(index)?, margin.is_finite().then_some(margin)))
}
