//! The engine that infergate measures. This one is a placeholder that speaks in bytes: load yours in `load`, and answer for it
//! in the three methods.

use anyhow::{Result, ensure};
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

const CONTEXT_TOKENS: usize = 2048;

struct ByteSum {
    context: Vec<TokenId>,
}

impl Engine for ByteSum {
    /// Who it is. Gates compare what has the same name and model.
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "placeholder".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            model: "bytes".into(),
            dtype: "u8".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    /// A new sequence: reads the prompt and gives the first token.
    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure!(!prompt.is_empty(), "the prompt has no tokens; give at least one");
        ensure_fits(prompt.len() + 1, CONTEXT_TOKENS)?;
        self.context = prompt.to_vec();
        self.next()
    }

    /// The next token of that sequence.
    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.context.len() + 1, CONTEXT_TOKENS)?;
        let token = self.context.iter().sum::<TokenId>() % 256;
        self.context.push(token);
        Ok(token)
    }
}

/// What the bench targets load, with the model and the threads that the settings name.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    Ok(Box::new(ByteSum { context: Vec::new() }))
}
