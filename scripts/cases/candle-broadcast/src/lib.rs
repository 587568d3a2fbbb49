//! One query for all heads, broadcast and multiplied with each head's keys: a product with a batch stride of zero.

use anyhow::Result;
use candle_core::{D, DType, Device, Tensor};
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

const CONTEXT_TOKENS: usize = 256;
const HEADS: usize = 8;
const WIDTH: usize = 32;

struct Attention {
    keys: Tensor,
    context: Vec<TokenId>,
}

impl Engine for Attention {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "candle broadcast".into(),
            version: "1".into(),
            model: "attention".into(),
            dtype: "f32".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: WIDTH,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.context = prompt.to_vec();
        self.next()
    }

    fn next(&mut self) -> Result<TokenId> {
        ensure_fits(self.context.len() + 1, CONTEXT_TOKENS)?;
        let last: Vec<TokenId> = self.context.iter().rev().take(4).copied().collect();
        let query: Vec<f32> =
            last.iter().flat_map(|id| (0..WIDTH).map(move |at| ((*id as usize * 7 + at) % 13) as f32 * 0.1 - 0.6)).collect();
        let query = Tensor::from_vec(query, (1, last.len(), WIDTH), &Device::Cpu)?;
        let scores = query.broadcast_as((HEADS, last.len(), WIDTH))?.matmul(&self.keys)?;
        let best = scores.sum(0)?.sum(0)?.argmax(D::Minus1)?.to_dtype(DType::U32)?.to_vec0::<u32>()?;
        self.context.push(best);
        Ok(best)
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    let values: Vec<f32> = (0..HEADS * WIDTH * WIDTH).map(|at| ((at * 37) % 29) as f32 * 0.03 - 0.4).collect();
    let keys = Tensor::from_vec(values, (HEADS, WIDTH, WIDTH), &Device::Cpu)?;
    Ok(Box::new(Attention { keys, context: Vec::new() }))
}
