//! From a [`LoadRequest`] to a [`Model`], and to a [`CandleEngine`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use candle_core::DType;

use crate::decoder::Decoder;
use crate::digest::Digest;
use crate::engine::Tokenize;
use crate::gpt2::{Gpt2, Gpt2Config};
use crate::heap::make_room;
use crate::local::{self, ModelFiles};
use crate::spec::ModelSpec;
use crate::{CANDLE_VERSION, CandleEngine, synthetic};
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
        Ok(ModelSpec::Synthetic(name)) => Gpt2Config::synthetic(&name).is_some(),
        Ok(ModelSpec::Directory(path)) => {
            let json = ModelFiles::in_directory(&path).and_then(|files| local::read_json(&files.config));
            json.is_ok_and(|json| local::architecture(&json).is_ok_and(|name| name == "gpt2"))
        }
        _ => false,
    }
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
    let gpt2 = if let ModelSpec::Synthetic(name) = &spec { Gpt2Config::synthetic(name) } else { None };
    let mut model = match gpt2 {
        Some(config) => synthetic_gpt2(&config, request)?,
        None => from_files(&spec, request)?,
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

#[cfg(feature = "models")]
use crate::files::open as from_files;

#[cfg(not(feature = "models"))]
fn from_files(spec: &ModelSpec, _: &LoadRequest) -> Result<Model> {
    bail!(
        "{spec}: this bench target was built without what reads such models; give --bench-features infergate-candle/models"
    )
}

/// GPT-2's architecture with seeded weights.
fn synthetic_gpt2(config: &Gpt2Config, request: &LoadRequest) -> Result<Model> {
    only_f32(request)?;
    make_room(&request.model, 4 * config.parameters())?;
    let decoder = Gpt2::load(config, synthetic::var_builder(request.seed, DType::F32), request.threads)?;
    let digest = Digest::of_recipe(&format!("seed {} {config:?}", request.seed));
    Ok(Model { decoder: Box::new(decoder), info: gpt2_info(config), text: None, digest })
}

pub(super) fn gpt2_info(config: &Gpt2Config) -> EngineInfo {
    EngineInfo {
        architecture: Some("gpt2".into()),
        dtype: "f32".into(),
        context_tokens: config.n_positions,
        vocab_tokens: config.vocab_size,
        ..EngineInfo::default()
    }
}

/// On a CPU candle computes safetensors and synthetic weights in f32.
pub(super) fn only_f32(request: &LoadRequest) -> Result<()> {
    match request.dtype.as_deref() {
        None | Some("f32") => Ok(()),
        Some(other) => bail!("dtype `{other}` is not possible for {}; use f32", request.model),
    }
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
