//! Models from files and from the hub, and synthetic ones of architectures that candle computes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use candle_core::safetensors::MmapedSafetensors;
use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use candle_transformers::models::quantized_llama::MAX_SEQ_LEN;
use safetensors::tensor::Dtype;
use serde::Deserialize as _;

use crate::config::{Family, LlamaConfig};
use crate::decoder::Decoder;
use crate::digest::Digest;
use crate::engine::Tokenize;
use crate::gguf::Gguf;
use crate::gpt2::{Gpt2, Gpt2Config};
use crate::heap::make_room;
use crate::hub::{Files, Hub};
use crate::local::{self, ModelFiles};
use crate::spec::ModelSpec;
use crate::tokenizer::Text;
use crate::weights::{self, Weight};
use crate::{CandleEngine, synthetic, transformers};
use infergate::engine::{EngineInfo, LoadRequest};

/// Opens what `spec` names.
pub fn open(spec: &ModelSpec, request: &LoadRequest) -> Result<CandleEngine> {
    match spec {
        ModelSpec::Gguf(path) => gguf(path, request),
        ModelSpec::Directory(path) => safetensors(&ModelFiles::in_directory(path)?, request),
        ModelSpec::Hub(hub) => {
            let fetched = Hub::from_env()?.fetch(hub)?;
            let mut engine = match &fetched.files {
                Files::Gguf(path) => gguf(path, request)?,
                Files::Directory(files) => safetensors(files, request)?,
            };
            engine.info.revision = Some(fetched.revision);
            Ok(engine)
        }
        ModelSpec::Synthetic(_) => synthetic_smollm2(request),
    }
}

fn gguf(path: &Path, request: &LoadRequest) -> Result<CandleEngine> {
    let file = Gguf::open(path)?;
    read_gguf(file, path, request).with_context(|| format!("cannot use {}", path.display()))
}

fn read_gguf(mut file: Gguf, path: &Path, request: &LoadRequest) -> Result<CandleEngine> {
    let stored = file.dtype();
    let dtype = request.dtype.clone().unwrap_or_else(|| stored.clone());
    let config = file.config()?;
    let text = Text::from_gguf(&mut file.content)?.map(shared);
    ensure!(dtype == stored || dtype == "f32", "dtype `{dtype}` is not possible; use {stored} (as stored) or f32");
    let as_stored = dtype == stored;
    let context_tokens = match config.family {
        // There are rotary tables for no more, whatever the file says.
        Family::Llama if as_stored => config.context.min(MAX_SEQ_LEN),
        _ => config.context,
    };
    let weight_bytes = if as_stored { file.quantized_bytes(&config).0 } else { weights::f32_bytes(&config) };
    make_room(&request.model, weight_bytes)?;
    let computes_in = file.computes_in().filter(|_| as_stored);
    let decoder =
        if as_stored { file.quantized(&config)? } else { transformers::in_f32(&config, file.dequantized(&config)?)? };
    let info = EngineInfo { context_tokens, computes_in, ..llama_info(&config, dtype) };
    Ok(CandleEngine::new(decoder, info, text, Digest::of_files(vec![path.to_owned()])))
}

fn safetensors(files: &ModelFiles, request: &LoadRequest) -> Result<CandleEngine> {
    let json = local::read_json(&files.config)?;
    let in_config = || format!("cannot use {}", files.config.display());
    let architecture = local::architecture(&json).with_context(in_config)?;
    let text = files.tokenizer.as_deref().map(Text::from_file).transpose()?.map(shared);
    let (vb, shapes) = mapped(&files.weights).context("the weights are damaged; download them again")?;
    let do_not_fit = || format!("the weights do not fit {}", files.config.display());
    let (decoder, info) = match Family::from_name(architecture) {
        Some(family) => {
            let config = LlamaConfig::from_hf(family, &json).with_context(in_config)?;
            let hf_name: fn(&Weight) -> &str = |w| &w.hf;
            weights::check(&config, hf_name, &shapes).with_context(do_not_fit)?;
            make_room(&request.model, weights::f32_bytes(&config))?;
            let tied = config.tied;
            // Qwen2 of candle would prefer a stored head to a tied one.
            let is_hidden = move |name: &str| tied && name == "lm_head.weight";
            let vb = vb.rename_f(move |name| if is_hidden(name) { String::new() } else { name.into() });
            (transformers::in_f32(&config, vb)?, llama_info(&config, "f32".into()))
        }
        None => {
            let config = Gpt2Config::deserialize(&json).with_context(in_config)?;
            config.validate().with_context(in_config)?;
            make_room(&request.model, 4 * config.parameters())?;
            let decoder = Gpt2::load(&config, vb, request.threads).with_context(do_not_fit)?;
            (Box::new(decoder) as Box<dyn Decoder>, config.info())
        }
    };
    Ok(CandleEngine::new(decoder, info, text, Digest::of_files(files.weights.clone())))
}

/// The weights in safetensors files, each read as f32 when it is asked for, and the shape of each.
fn mapped(files: &[PathBuf]) -> Result<(VarBuilder<'static>, HashMap<String, Vec<usize>>)> {
    // SAFETY: as of every mapped file, nobody may change it meanwhile. The files are the user's own.
    let files = unsafe { MmapedSafetensors::multi(files) }?;
    // Masks and position tables of old checkpoints come as integers; no weight asked for is one.
    let is_float = |dtype| matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16);
    let weights = files.tensors().into_iter().filter(|(_, view)| is_float(view.dtype()));
    let shapes = weights.map(|(name, view)| (name, view.shape().to_vec())).collect();
    Ok((VarBuilder::from_backend(Box::new(files), DType::F32, Device::Cpu), shapes))
}

/// SmolLM2's architecture with seeded weights.
fn synthetic_smollm2(request: &LoadRequest) -> Result<CandleEngine> {
    let config = LlamaConfig::smollm2_135m();
    make_room(&request.model, weights::f32_bytes(&config))?;
    let decoder = transformers::in_f32(&config, synthetic::var_builder(request.seed, DType::F32))?;
    let digest = Digest::of_recipe(&format!("seed {} {config:?}", request.seed));
    Ok(CandleEngine::new(decoder, llama_info(&config, "f32".into()), None, digest))
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

fn shared(text: Text) -> Arc<dyn Tokenize> {
    Arc::new(text)
}
