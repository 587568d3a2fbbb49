//! A tiny engine. `demo` changes it in five ways, to see whether the gate names each.

use std::hint::black_box;

use anyhow::Result;
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

/// Arithmetic for one token: some microseconds, as the compiler joins several rounds into one.
const ROUNDS: u64 = 20_000;
const CONTEXT_TOKENS: usize = 1024;

/// Speaks in bytes: the next one is the sum of all before it.
struct ByteSum {
    context: Vec<TokenId>,
}

impl Engine for ByteSum {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "demo".into(),
            version: "1.0.0".into(),
            model: "bytes".into(),
            dtype: "u8".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: 256,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.context.clear();
        self.context.extend(prompt);
        self.next()
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.context.len() + 1, CONTEXT_TOKENS)?;
        work(ROUNDS);
        let token = self.context.iter().sum::<TokenId>() % 256;
        self.context.push(token);
        Ok(token)
    }
}

/// Arithmetic that the compiler cannot leave out.
fn work(rounds: u64) {
    let mut x = black_box(1_u64);
    for _ in 0..rounds {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(x);
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    Ok(Box::new(ByteSum { context: Vec::with_capacity(CONTEXT_TOKENS) }))
}
