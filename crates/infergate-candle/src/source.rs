//! From a [`LoadRequest`] to a [`CandleEngine`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, bail};
use candle_core::DType;

use crate::digest::Digest;
use crate::gpt2::{Gpt2, Gpt2Config};
use crate::heap::make_room;
use crate::local::{self, ModelFiles};
use crate::spec::{HubSpec, ModelSpec};
use crate::{CANDLE_VERSION, CandleEngine, first_line, synthetic};
use infergate::engine::LoadRequest;

/// Loads the model that `request` names.
///
/// # Errors
/// One line saying what is wrong with the spec, the files or the request. A panic of a library over a file becomes one as well.
pub fn load(request: &LoadRequest) -> Result<CandleEngine> {
    let opened = catch_unwind(AssertUnwindSafe(|| open(request))).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        bail!("{}: a library panicked over it ({}); is it damaged?", request.model, why.unwrap_or("without a message"))
    });
    opened.map_err(first_line)
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

fn open(request: &LoadRequest) -> Result<CandleEngine> {
    let spec: ModelSpec = request.model.parse()?;
    let is_gguf = matches!(spec, ModelSpec::Gguf(_) | ModelSpec::Hub(HubSpec { file: Some(_), .. }));
    // On a CPU candle computes all others in f32.
    if let Some(other) = request.dtype.as_deref().filter(|dtype| !is_gguf && *dtype != "f32") {
        bail!("dtype `{other}` is not possible for {}; use f32", request.model);
    }
    let gpt2 = if let ModelSpec::Synthetic(name) = &spec { Gpt2Config::synthetic(name) } else { None };
    let mut engine = match gpt2 {
        Some(config) => synthetic_gpt2(&config, request)?,
        None => from_files(&spec, request)?,
    };
    let info = &mut engine.info;
    info.model = spec.to_string();
    if is_gguf && request.dtype.as_deref() == Some("f32") {
        // Other numbers than the file's: a subject, and a baseline, of its own.
        info.model += " as f32";
    }
    info.name = "candle".into();
    info.version = CANDLE_VERSION.into();
    info.settings.extend(environment(request));
    Ok(engine)
}

#[cfg(feature = "models")]
use crate::files::open as from_files;

#[cfg(not(feature = "models"))]
fn from_files(spec: &ModelSpec, _: &LoadRequest) -> Result<CandleEngine> {
    bail!(
        "{spec}: this bench target was built without what reads such models; give --bench-features infergate-candle/models"
    )
}

/// GPT-2's architecture with seeded weights.
fn synthetic_gpt2(config: &Gpt2Config, request: &LoadRequest) -> Result<CandleEngine> {
    make_room(&request.model, 4 * config.parameters())?;
    let decoder = Gpt2::load(config, synthetic::var_builder(request.seed, DType::F32), request.threads)?;
    let digest = Digest::of_recipe(&format!("seed {} {config:?}", request.seed));
    Ok(CandleEngine::new(Box::new(decoder), config.info(), None, digest))
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
