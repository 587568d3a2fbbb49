//! From a [`LoadRequest`] to a [`CandleEngine`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use candle_core::DType;
use candle_nn::VarBuilder;

use crate::adapter::{Adapter, Facts};
use crate::config::{Family, LlamaConfig};
use crate::decoder::Decoder;
use crate::digest::Digest;
use crate::fits::Needs;
use crate::gguf::Gguf;
use crate::gpt2::{Gpt2, Gpt2Config};
use crate::heap::make_room;
use crate::hub::{Files, Hub};
use crate::local::{self, ModelFiles};
use crate::safetensors::SafeTensorFiles;
use crate::spec::ModelSpec;
use crate::tokenizer::Text;
use crate::weights::Weight;
use crate::{CANDLE_VERSION, CandleEngine, llama, qwen, settings, synthetic, weights};
use infergate::engine::{EngineInfo, LoadRequest};
use serde::Deserialize as _;

/// Loads the model that `request` names.
///
/// # Errors
/// One line saying what is wrong with the spec, the files or the request. A panic of a library over a file becomes one as well.
pub fn load(request: &LoadRequest) -> Result<CandleEngine> {
    let Model { decoder, info, text, digest } = open(request)?;
    Ok(CandleEngine::new(decoder, info, text, digest))
}

/// Whether `request` names a model that computes in a [`Team`](crate::parallel::Team), as far as can be told before anything
/// is fetched.
pub(super) fn is_gpt2(request: &LoadRequest) -> bool {
    match request.model.parse() {
        Ok(ModelSpec::Synthetic(name)) => name != "smollm2-135m",
        Ok(ModelSpec::Directory(path)) => {
            let json = ModelFiles::in_directory(&path).and_then(|files| local::read_config(&files.config));
            json.is_ok_and(|json| local::architecture(&json).is_ok_and(|name| name == "gpt2"))
        }
        _ => false,
    }
}

/// A loaded model before it becomes an engine.
pub struct Model {
    /// The model itself.
    pub decoder: Box<dyn Decoder>,
    /// Who it is, without what `decoder` and `digest` know.
    pub info: EngineInfo,
    /// Its tokenizer, if it has one.
    pub text: Option<Text>,
    /// Identity of its weights.
    pub digest: Digest,
}

/// As [`load`], for callers that want the logits.
///
/// # Errors
/// As [`load`].
pub fn open(request: &LoadRequest) -> Result<Model> {
    let opened = catch_unwind(AssertUnwindSafe(|| open_files(request))).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        bail!("{}: a library panicked over it ({}); is it damaged?", request.model, why.unwrap_or("without a message"))
    });
    // Below its first line candle prints backtraces.
    opened.map_err(|error| anyhow!("{}", format!("{error:#}").lines().next().unwrap_or_default()))
}

fn open_files(request: &LoadRequest) -> Result<Model> {
    let spec: ModelSpec = request.model.parse()?;
    let mut model = match &spec {
        ModelSpec::Gguf(path) => gguf(path, request)?,
        ModelSpec::Directory(path) => safetensors(&ModelFiles::in_directory(path)?, request)?,
        ModelSpec::Hub(hub) => {
            let fetched = Hub::from_env()?.fetch(hub)?;
            let mut model = match &fetched.files {
                Files::Gguf(path) => gguf(path, request)?,
                Files::Directory(files) => safetensors(files, request)?,
            };
            model.info.revision = Some(fetched.revision);
            model
        }
        ModelSpec::Synthetic(name) => synthetic(name, request)?,
    };
    model.info.model = spec.to_string();
    if request.dtype.as_deref() == Some("f32") && model.info.model.ends_with(".gguf") {
        // Other numbers than the file's: a subject, and a baseline, of its own.
        model.info.model += " as f32";
    }
    model.info.name = "candle".into();
    model.info.version = CANDLE_VERSION.into();
    model.info.settings.extend(environment(request));
    Ok(model)
}

fn gguf(path: &Path, request: &LoadRequest) -> Result<Model> {
    let file = Gguf::open(path)?;
    read_gguf(file, path, request).with_context(|| format!("cannot use {}", path.display()))
}

fn read_gguf(mut file: Gguf, path: &Path, request: &LoadRequest) -> Result<Model> {
    let stored = file.dtype();
    let dtype = request.dtype.clone().unwrap_or_else(|| stored.clone());
    let config = file.config()?;
    let text = Text::from_gguf(&mut file.content)?;
    ensure!(dtype == stored || dtype == "f32", "dtype `{dtype}` is not possible; use {stored} (as stored) or f32");
    let as_stored = dtype == stored;
    let context_tokens = match config.family {
        Family::Llama if as_stored => config.context.min(llama::QUANTIZED_CONTEXT_TOKENS),
        _ => config.context,
    };
    make_room(&request.model, &file.needs(&LlamaConfig { context: context_tokens, ..config.clone() }, as_stored))?;
    let computes_in = file.computes_in().filter(|_| as_stored);
    let decoder = if as_stored { file.quantized(&config)? } else { f32_decoder(&config, file.dequantized(&config)?)? };
    let info = EngineInfo { context_tokens, computes_in, ..llama_info(&config, dtype) };
    Ok(Model { decoder, info, text, digest: Digest::of_files(vec![path.to_owned()]) })
}

fn safetensors(files: &ModelFiles, request: &LoadRequest) -> Result<Model> {
    only_f32(request)?;
    let json = local::read_config(&files.config)?;
    let in_config = || format!("cannot use {}", files.config.display());
    let architecture = local::architecture(&json).with_context(in_config)?;
    let text = files.tokenizer.as_deref().map(Text::from_file).transpose()?;
    let weights = SafeTensorFiles::open(&files.weights).context("the weights are damaged; download them again")?;
    let do_not_fit = || format!("the weights do not fit {}", files.config.display());
    let (decoder, info) = match Family::from_name(architecture) {
        Some(family) => {
            let config = LlamaConfig::from_hf(family, &json).with_context(in_config)?;
            let hf_name: fn(&Weight) -> &str = |w| &w.hf;
            weights::check(&config, hf_name, &|n| weights.shape(n), weights.names()).with_context(do_not_fit)?;
            make_room(&request.model, &Needs::llama(&config, f32_bytes(weights::parameters(&config)), 0, false))?;
            let tied = config.tied;
            // Qwen2 of candle would prefer a stored head to a tied one.
            let is_hidden = move |name: &str| tied && name == "lm_head.weight";
            let vb = weights.weights().rename_f(move |name| if is_hidden(name) { String::new() } else { name.into() });
            (f32_decoder(&config, vb)?, llama_info(&config, "f32".into()))
        }
        None => {
            let config = Gpt2Config::deserialize(&json).with_context(in_config)?;
            config.validate().with_context(in_config)?;
            make_room(&request.model, &config.needs(config.cut_bytes(1)))?;
            let decoder = Gpt2::load(&config, weights.weights(), request.threads).with_context(do_not_fit)?;
            (Box::new(decoder) as Box<dyn Decoder>, gpt2_info(&config))
        }
    };
    Ok(Model { decoder, info, text, digest: Digest::of_files(files.weights.clone()) })
}

/// A published architecture with seeded weights.
fn synthetic(name: &str, request: &LoadRequest) -> Result<Model> {
    only_f32(request)?;
    let vb = synthetic::var_builder(request.seed, DType::F32);
    let config = match name {
        "gpt2" => Gpt2Config::gpt2(),
        "distilgpt2" => Gpt2Config::distilgpt2(),
        "tiny" => Gpt2Config::tiny(),
        _ => {
            let config = LlamaConfig::smollm2_135m();
            let embedding = f32_bytes((config.vocab * config.hidden) as u64);
            let needs = Needs::llama(&config, f32_bytes(weights::parameters(&config)), embedding, false);
            make_room(&request.model, &needs)?;
            let info = llama_info(&config, "f32".into());
            let digest = Digest::of_recipe(&format!("seed {} {config:?}", request.seed));
            return Ok(Model { decoder: f32_decoder(&config, vb)?, info, text: None, digest });
        }
    };
    make_room(&request.model, &config.needs(config.cut_bytes(1)))?;
    let decoder = Gpt2::load(&config, vb, request.threads)?;
    let digest = Digest::of_recipe(&format!("seed {} {config:?}", request.seed));
    Ok(Model { decoder: Box::new(decoder), info: gpt2_info(&config), text: None, digest })
}

fn gpt2_info(config: &Gpt2Config) -> EngineInfo {
    EngineInfo {
        architecture: Some("gpt2".into()),
        dtype: "f32".into(),
        context_tokens: config.n_positions,
        vocab_tokens: config.vocab_size,
        ..EngineInfo::default()
    }
}

/// On a CPU candle computes safetensors and synthetic weights in f32.
fn only_f32(request: &LoadRequest) -> Result<()> {
    match request.dtype.as_deref() {
        None | Some("f32") => Ok(()),
        Some(other) => bail!("dtype `{other}` is not possible for {}; use f32", request.model),
    }
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

/// What that many weights take in f32.
fn f32_bytes(weights: u64) -> u64 {
    4 * weights
}

/// A model with Llama's layout in f32. `vb` must have every weight of `config`.
fn f32_decoder(config: &LlamaConfig, vb: VarBuilder<'_>) -> Result<Box<dyn Decoder>> {
    let parameters = weights::parameters(config);
    let embedding = (config.vocab * config.hidden) as u64;
    // Of an embedding that is not the head too, a step reads one row.
    let read = if config.tied { parameters } else { parameters - embedding };
    let facts = Facts {
        parameters,
        weight_bytes: f32_bytes(parameters),
        cost: config.cost(f32_bytes(read)),
        settings: settings("", config.family),
    };
    Ok(match config.family {
        Family::Llama => Box::new(Adapter::new(llama::Llama::load(config, vb)?, facts)),
        Family::Qwen2 => Box::new(Adapter::new(qwen::qwen2(config, vb)?, facts)),
        Family::Qwen3 => Box::new(Adapter::new(qwen::qwen3(config, vb)?, facts)),
    })
}

/// The settings that are chosen before the process starts, as this process found them.
fn environment(request: &LoadRequest) -> Vec<(String, String)> {
    use infergate::engine::EngineFactory as _;
    let names = crate::Candle.environment(request).into_iter().map(|(name, _)| name);
    let found = names.map(|name| {
        let value = std::env::var(&name).unwrap_or_else(|_| "unset".into());
        (name, value)
    });
    found.chain([("candle_threads".to_owned(), candle_core::utils::get_num_threads().to_string())]).collect()
}
