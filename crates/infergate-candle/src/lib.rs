//! Engines on candle: where weights come from, and the architectures that run on them.

#[cfg(feature = "models")]
pub mod config;
pub mod decoder;
pub mod digest;
pub mod engine;
#[cfg(feature = "models")]
mod files;
#[cfg(feature = "models")]
pub mod gguf;
pub mod gpt2;
mod heap;
#[cfg(feature = "models")]
pub mod hub;
pub mod local;
pub mod parallel;
mod source;
pub mod spec;
pub mod synthetic;
#[cfg(feature = "models")]
pub mod tokenizer;
#[cfg(feature = "models")]
mod transformers;
#[cfg(feature = "models")]
pub mod weights;

use anyhow::{Error, Result, anyhow};

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

/// An error and its causes in one line: behind its first line candle prints backtraces.
fn first_line(error: Error) -> Error {
    anyhow!("{}", format!("{error:#}").lines().next().unwrap_or_default())
}
