//! The toy engine, as infergate asks it. This takes the place of the engine that `cargo infergate init` wrote.

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};
use toy::{CONTEXT_TOKENS, Toy};

struct Asked(Toy);

impl Engine for Asked {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "toy".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            model: "bytes".into(),
            dtype: "u8".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure_fits(prompt.len() + 1, CONTEXT_TOKENS)?;
        Ok(self.0.read(prompt))
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.0.len() + 1, CONTEXT_TOKENS)?;
        Ok(self.0.step())
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    Ok(Box::new(Asked(Toy::new())))
}
