//! Engines on candle: where weights come from, and the architectures that run on them.

pub mod adapter;
pub mod config;
pub mod decoder;
pub mod digest;
pub mod engine;
pub mod fits;
pub mod gguf;
pub mod gpt2;
mod heap;
pub mod hub;
pub mod llama;
pub mod local;
pub mod parallel;
pub mod qwen;
pub mod safetensors;
pub mod source;
pub mod spec;
pub mod synthetic;
pub mod tokenizer;
pub mod weights;

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};

pub use engine::CandleEngine;
pub use spec::ModelSpec;

use infergate::engine::{Engine, EngineFactory, LoadRequest};

/// The version of candle the engines run on, as in Cargo.lock.
pub const CANDLE_VERSION: &str = "0.11.1";

/// Makes engines on candle. [`LoadRequest::model`] is a [`ModelSpec`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Candle;

impl EngineFactory for Candle {
    fn load(&self, request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
        Ok(Box::new(source::load(request)?))
    }

    fn environment(&self, request: &LoadRequest) -> Vec<(String, String)> {
        if source::is_gpt2(request) { parallel::environment_for_team() } else { parallel::environment(request.threads) }
    }
}

/// What every adapter to candle-transformers says of itself in a receipt. `kind` stands before the family's name there.
fn settings(kind: &str, family: config::Family) -> BTreeMap<String, String> {
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    let implementation = format!("candle-transformers {kind}{}", family.name());
    // That of qwen3 depends on what is read.
    let attention = (family != config::Family::Qwen3).then(|| pair("attention", "whole_score_matrix"));
    let is_preallocated = kind == "quantized_" && family == config::Family::Qwen3;
    let cache = if is_preallocated { "f32, preallocated" } else { "f32, concatenated at each step" };
    let known = [pair("implementation", &implementation), pair("kv_cache", cache)];
    known.into_iter().chain(attention).collect()
}

/// candle's errors as ours, in one line: behind its first line candle prints backtraces.
trait OneLine<T> {
    fn one_line(self) -> Result<T>;
}

impl<T> OneLine<T> for candle_core::Result<T> {
    fn one_line(self) -> Result<T> {
        self.map_err(|error| {
            anyhow!("{}", error.to_string().lines().next().unwrap_or("candle failed without saying why"))
        })
    }
}
