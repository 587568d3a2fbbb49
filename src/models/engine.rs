//! [`CandleEngine`]: a [`Decoder`] as an [`Engine`]. Greedy decoding, context limits, text.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use super::OneLine as _;
use super::decoder::Decoder;
use super::digest::Digest;
use super::tokenizer::Text;
use crate::engine::{Cost, Engine, EngineInfo, TokenId, ensure_fits};

/// A model on candle with room for one sequence.
pub struct CandleEngine {
    decoder: Box<dyn Decoder>,
    text: Option<Arc<Text>>,
    info: EngineInfo,
    digest: Arc<Digest>,
    prompt_tokens: usize,
    first: Option<Greedy>,
    last: Option<Greedy>,
    first_sample_ns: Option<u64>,
}

/// The best token and how far the second lies behind it, in logits.
#[derive(Debug, Clone, Copy)]
struct Greedy {
    token: TokenId,
    margin: Option<f32>,
}

impl CandleEngine {
    /// An engine over `decoder`. Of `info` the fields about weights and settings are filled in from `decoder` and `digest`.
    pub fn new(decoder: Box<dyn Decoder>, info: EngineInfo, text: Option<Text>, digest: Digest) -> Self {
        let mut info = info;
        info.parameters = Some(decoder.parameters());
        info.weight_bytes = Some(decoder.weight_bytes());
        info.settings.extend(decoder.settings());
        Self {
            decoder,
            text: text.map(Arc::new),
            info,
            digest: Arc::new(digest),
            prompt_tokens: 0,
            first: None,
            last: None,
            first_sample_ns: None,
        }
    }

    /// Runs `tokens` and picks the best next token; also the nanoseconds the picking took.
    fn step(&mut self, tokens: &[TokenId]) -> Result<(Greedy, u64)> {
        let logits = self.decoder.forward(tokens)?;
        let sampling = Instant::now();
        let best = greedy(&logits.to_vec1::<f32>().one_line()?)?;
        Ok((best, u64::try_from(sampling.elapsed().as_nanos())?))
    }
}

impl Engine for CandleEngine {
    fn info(&self) -> EngineInfo {
        EngineInfo { weights_sha256: self.digest.sha256(), ..self.info.clone() }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure!(!prompt.is_empty(), "the prompt has no tokens; give at least one");
        ensure_fits(prompt.len() + 1, self.info.context_tokens)?;
        let vocab = self.info.vocab_tokens;
        if let Some(id) = prompt.iter().find(|&&id| id as usize >= vocab) {
            bail!("token {id} is outside the model's vocabulary; ids are below {vocab}");
        }
        (self.first, self.last, self.first_sample_ns) = (None, None, None);
        self.decoder.reset()?;
        let (best, sample_ns) = self.step(prompt)?;
        self.prompt_tokens = prompt.len();
        (self.first, self.last, self.first_sample_ns) = (Some(best), Some(best), Some(sample_ns));
        Ok(best.token)
    }

    fn next(&mut self) -> Result<TokenId> {
        let Some(last) = self.last else { bail!("no sequence was started; call start first") };
        ensure_fits(self.decoder.cached_tokens() + 2, self.info.context_tokens)?;
        self.last = None;
        let (best, _) = self.step(&[last.token])?;
        self.last = Some(best);
        Ok(best.token)
    }

    fn rewind(&mut self) -> Result<bool> {
        let possible = self.first.is_some() && self.decoder.truncate(self.prompt_tokens)?;
        if possible {
            self.last = self.first;
        }
        Ok(possible)
    }

    fn tokenize(&self, text: &str) -> Result<Option<Vec<TokenId>>> {
        self.text.as_ref().map(|t| t.tokenize(text)).transpose()
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Result<Option<String>> {
        self.text.as_ref().map(|t| t.detokenize(tokens)).transpose()
    }

    fn top2_margin(&self) -> Option<f32> {
        self.last.and_then(|best| best.margin)
    }

    fn first_sample_ns(&self) -> Option<u64> {
        self.first_sample_ns
    }

    fn cost(&self) -> Option<Cost> {
        self.decoder.cost()
    }

    fn fork(&self) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(Self {
            decoder: self.decoder.fork()?,
            text: self.text.clone(),
            info: self.info.clone(),
            digest: self.digest.clone(),
            prompt_tokens: 0,
            first: None,
            last: None,
            first_sample_ns: None,
        }))
    }
}

/// The highest logit's index, the lowest index on ties.
fn greedy(logits: &[f32]) -> Result<Greedy> {
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
    Ok(Greedy { token: TokenId::try_from(index)?, margin: margin.is_finite().then_some(margin) })
}
