//! Another repository's engine, gated: one trait and a `main`.
//!
//! In that repository this file is `benches/inference.rs` with `harness = false`; `cargo bench` then times it and
//! `cargo infergate gate` judges it. Try it here: `cargo run --release --example own_engine -- --bench --quick`.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

/// Speaks in bytes: the next one is the sum of all before it.
pub struct ByteSum {
    context: Vec<TokenId>,
}

impl Engine for ByteSum {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "byte-sum".into(),
            version: "1.0.0".into(),
            model: "bytes".into(),
            dtype: "u8".into(),
            context_tokens: 2048,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure!(!prompt.is_empty(), "the prompt has no tokens; give at least one");
        ensure_fits(prompt.len() + 1, 2048)?;
        self.context = prompt.to_vec();
        self.next()
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.context.len() + 1, 2048)?;
        let token = self.context.iter().sum::<TokenId>() % 256;
        self.context.push(token);
        Ok(token)
    }
}

/// The engine, whatever is asked for: it has no weights to load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    Ok(Box::new(ByteSum { context: Vec::new() }))
}

fn main() -> ExitCode {
    infergate::bench::main(&load)
}
