//! A loaded model before it becomes an engine.

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::decoder::Decoder;
use crate::digest::Digest;
use crate::engine::Tokenize;
use crate::gpt2::Gpt2Config;
use infergate::engine::{EngineInfo, LoadRequest};

/// A loaded model before it becomes an engine.
pub struct Model {
    /// The model itself.
    pub decoder: Box<dyn Decoder>,
    /// Who it is, without what `decoder` and `digest` know.
    pub info: EngineInfo,
    /// Its tokenizer, if it has one.
    pub text: Option<Arc<dyn Tokenize>>,
    /// Identity of its weights.
    pub digest: Digest,
}

pub(crate) fn gpt2_info(config: &Gpt2Config) -> EngineInfo {
    EngineInfo {
        architecture: Some("gpt2".into()),
        dtype: "f32".into(),
        context_tokens: config.n_positions,
        vocab_tokens: config.vocab_size,
        ..EngineInfo::default()
    }
}

/// On a CPU candle computes safetensors and synthetic weights in f32.
pub(crate) fn only_f32(request: &LoadRequest) -> Result<()> {
    match request.dtype.as_deref() {
        None | Some("f32") => Ok(()),
        Some(other) => bail!("dtype `{other}` is not possible for {}; use f32", request.model),
    }
}
