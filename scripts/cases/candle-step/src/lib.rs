//! What a decode step of a small model asks of candle: four matrix products, activations, a softmax. RAYON_NUM_THREADS is left as
//! it is, as most programs leave it.

use anyhow::Result;
use candle_core::{D, DType, Device, Tensor};
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

const CONTEXT_TOKENS: usize = 256;
const WIDTH: usize = 128;

struct Layers {
    weights: Vec<Tensor>,
    state: Tensor,
    tokens: usize,
}

impl Layers {
    fn step(&mut self, input: &[TokenId]) -> Result<TokenId> {
        ensure_fits(self.tokens + input.len() + 1, CONTEXT_TOKENS)?;
        self.tokens += input.len();
        let embedded: Vec<f32> =
            input.iter().flat_map(|id| (0..WIDTH).map(move |at| ((*id as usize + at) % 17) as f32 * 0.05)).collect();
        let mut x = Tensor::from_vec(embedded, (input.len(), WIDTH), &Device::Cpu)?.broadcast_add(&self.state)?;
        for weight in &self.weights {
            x = x.matmul(weight)?.gelu()?;
            x = (candle_nn::ops::softmax(&x, D::Minus1)? + x)?;
        }
        self.state = x.narrow(0, input.len() - 1, 1)?.tanh()?;
        Ok(self.state.argmax(D::Minus1)?.to_dtype(DType::U32)?.to_vec1::<u32>()?[0])
    }
}

impl Engine for Layers {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "candle step".into(),
            version: "1".into(),
            model: "layers".into(),
            dtype: "f32".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: WIDTH,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.tokens = 0;
        self.state = Tensor::zeros((1, WIDTH), DType::F32, &Device::Cpu)?;
        self.step(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.step(&[self.tokens as TokenId])
    }
}

/// What the bench targets load.
pub fn load(_request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    let weight = |layer: usize| {
        let values = (0..WIDTH * WIDTH).map(|at| ((at * 31 + layer * 7) % 23) as f32 * 0.01 - 0.11).collect::<Vec<_>>();
        Ok(Tensor::from_vec(values, (WIDTH, WIDTH), &Device::Cpu)?)
    };
    let weights = (0..4).map(weight).collect::<Result<_>>()?;
    let state = Tensor::zeros((1, WIDTH), DType::F32, &Device::Cpu)?;
    Ok(Box::new(Layers { weights, state, tokens: 0 }))
}
