//! A server that answers with an embedding as JSON: 768 numbers of 32 bits, written out. The "model" is a generator of numbers.

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

const CONTEXT_TOKENS: usize = 256;
const WIDTH: usize = 768;

struct Embeddings {
    state: u32,
    tokens: usize,
}

impl Embeddings {
    /// Between -0.11 and 0.11, as embeddings are, and none so small that it is written with an exponent.
    fn value(&mut self) -> f32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = (self.state >> 8) as f32 / (1 << 24) as f32 * 0.1 + 0.01;
        if self.state & 0x80 == 0 { size } else { -size }
    }
}

impl Engine for Embeddings {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "embeddings".into(),
            version: "1".into(),
            model: "numbers".into(),
            dtype: "f32".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        ensure_fits(prompt.len() + 1, CONTEXT_TOKENS)?;
        self.state = prompt.iter().fold(1, |state, id| state * 31 % 65_521 + id);
        self.tokens = prompt.len();
        self.next()
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.tokens + 1, CONTEXT_TOKENS)?;
        self.tokens += 1;
        let values: Vec<f32> = (0..WIDTH).map(|_| self.value()).collect();
        let text = serde_json::to_vec(&values)?;
        // Another text is another output.
        Ok(text.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte))) % 256)
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    Ok(Box::new(Embeddings { state: 1, tokens: 0 }))
}
