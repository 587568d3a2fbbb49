//! From a [`LoadRequest`] to a [`CandleEngine`].

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use candle_nn::VarBuilder;

use super::adapter::{Adapter, Facts};
use super::config::{Family, LlamaConfig};
use super::decoder::Decoder;
use super::digest::Digest;
use super::gguf::Gguf;
use super::spec::ModelSpec;
use super::tokenizer::Text;
use super::{CANDLE_VERSION, CandleEngine, llama, qwen, settings, weights};
use crate::engine::{EngineInfo, LoadRequest};

/// Loads the model that `request` names.
///
/// # Errors
/// One line saying what is wrong with the spec, the files or the request.
pub fn load(request: &LoadRequest) -> Result<CandleEngine> {
    let spec: ModelSpec = request.model.parse()?;
    let (decoder, mut info, text, digest) = match &spec {
        ModelSpec::Gguf(path) => gguf(path, request)?,
        _ => bail!("not yet"),
    };
    info.model = spec.to_string();
    info.name = "candle".into();
    info.version = CANDLE_VERSION.into();
    info.settings.extend(environment(request));
    Ok(CandleEngine::new(decoder, info, text, digest))
}

type Parts = (Box<dyn Decoder>, EngineInfo, Option<Text>, Digest);

fn gguf(path: &Path, request: &LoadRequest) -> Result<Parts> {
    let file = Gguf::open(path)?;
    let stored = file.dtype();
    let dtype = request.dtype.clone().unwrap_or_else(|| stored.clone());
    let config = file.config().with_context(|| format!("cannot use {}", path.display()))?;
    let text = Text::from_gguf(&file.content).with_context(|| format!("cannot use {}", path.display()))?;
    ensure!(
        dtype == stored || dtype == "f32",
        "dtype `{dtype}` is not possible for {}; use {stored} (as stored) or f32",
        path.display()
    );
    let as_stored = dtype == stored;
    let context_tokens = match config.family {
        Family::Llama if as_stored => config.context.min(llama::QUANTIZED_CONTEXT_TOKENS),
        _ => config.context,
    };
    let decoder = if as_stored { file.quantized(&config)? } else { f32_decoder(&config, file.dequantized(&config)?)? };
    let info = EngineInfo { context_tokens, ..llama_info(&config, dtype) };
    Ok((decoder, info, text, Digest::of_files(vec![path.to_owned()])))
}

fn llama_info(config: &LlamaConfig, dtype: String) -> EngineInfo {
    EngineInfo {
        architecture: Some(config.family.name().into()),
        dtype,
        context_tokens: config.context,
        vocab_tokens: config.vocab,
        ..EngineInfo::default()
    }
}

/// A model with Llama's layout in f32. `vb` must have every weight of `config`.
fn f32_decoder(config: &LlamaConfig, vb: VarBuilder<'_>) -> Result<Box<dyn Decoder>> {
    let parameters = weights::parameters(config);
    let bytes = |weights: u64| weights * size_of::<f32>() as u64;
    let embedding = (config.vocab * config.hidden) as u64;
    // Of an embedding that is not the head too, a step reads one row.
    let read = if config.tied { parameters } else { parameters - embedding };
    let facts = Facts {
        parameters,
        weight_bytes: bytes(parameters),
        cost: config.cost(bytes(read)),
        settings: settings(&format!("candle-transformers {}", config.family.name())),
    };
    Ok(match config.family {
        Family::Llama => Box::new(Adapter::new(llama::Llama::load(config, vb)?, facts)),
        Family::Qwen2 => Box::new(Adapter::new(qwen::qwen2(config, vb)?, facts)),
        Family::Qwen3 => Box::new(Adapter::new(qwen::qwen3(config, vb)?, facts)),
    })
}

/// The settings that are chosen before the process starts, as this process found them.
fn environment(request: &LoadRequest) -> Vec<(String, String)> {
    use crate::engine::EngineFactory as _;
    let names = super::Candle.environment(request).into_iter().map(|(name, _)| name);
    let found = names.map(|name| {
        let value = std::env::var(&name).unwrap_or_else(|_| "unset".into());
        (name, value)
    });
    found.chain([("threads".to_owned(), candle_core::utils::get_num_threads().to_string())]).collect()
}
