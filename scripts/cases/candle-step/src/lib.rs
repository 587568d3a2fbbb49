//! What a step of a small model asks of candle: four matrix products, activations, a softmax. The model `layers` is of f32, the
//! model `quantised` of Q4_K blocks. RAYON_NUM_THREADS is left as it is, as most programs leave it.

use anyhow::{Result, bail};
use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{D, DType, Device, Module, Tensor};
use infergate::engine::{Engine, EngineInfo, LoadRequest, TokenId, ensure_fits};

const CONTEXT_TOKENS: usize = 256;
const LAYERS: usize = 4;

enum Weight {
    F32(Tensor),
    Quantised(QMatMul),
}

impl Weight {
    fn product(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::F32(weight) => Ok(x.matmul(weight)?),
            Self::Quantised(weight) => Ok(weight.forward(x)?),
        }
    }
}

struct Layers {
    model: String,
    width: usize,
    weights: Vec<Weight>,
    state: Tensor,
    tokens: usize,
}

fn softmax(x: &Tensor) -> Result<Tensor> {
    let powers = x.broadcast_sub(&x.max_keepdim(D::Minus1)?)?.exp()?;
    Ok(powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)?)
}

impl Layers {
    fn zero(width: usize) -> Result<Tensor> {
        Ok(Tensor::zeros((1, width), DType::F32, &Device::Cpu)?)
    }

    fn step(&mut self, input: &[TokenId]) -> Result<TokenId> {
        ensure_fits(self.tokens + input.len() + 1, CONTEXT_TOKENS)?;
        self.tokens += input.len();
        let width = self.width;
        let embedded: Vec<f32> =
            input.iter().flat_map(|id| (0..width).map(move |at| ((*id as usize + at) % 17) as f32 * 0.05)).collect();
        let mut x = Tensor::from_vec(embedded, (input.len(), width), &Device::Cpu)?.broadcast_add(&self.state)?;
        for weight in &self.weights {
            x = weight.product(&x)?.gelu()?;
            x = (softmax(&x)? + x)?;
        }
        let scores = x.narrow(0, input.len() - 1, 1)?;
        self.state = scores.tanh()?;
        Ok(scores.argmax(D::Minus1)?.to_dtype(DType::U32)?.to_vec1::<u32>()?[0])
    }
}

impl Engine for Layers {
    fn info(&self) -> EngineInfo {
        EngineInfo {
            name: "candle step".into(),
            version: "1".into(),
            model: self.model.clone(),
            dtype: "f32".into(),
            context_tokens: CONTEXT_TOKENS,
            vocab_tokens: self.width,
            ..EngineInfo::default()
        }
    }

    fn start(&mut self, prompt: &[TokenId]) -> Result<TokenId> {
        self.tokens = 0;
        self.state = Self::zero(self.width)?;
        self.step(prompt)
    }

    fn next(&mut self) -> Result<TokenId> {
        self.step(&[self.tokens as TokenId])
    }
}

/// The next of a row of numbers from -1 to 1 that do not repeat, so that no two scores are nearly the same.
fn number(state: &mut u32) -> f32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 8) as f32 / (1 << 23) as f32 - 1.0
}

/// What the bench targets load.
pub fn load(request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
    let (width, quantised) = match request.model.as_str() {
        "layers" => (128, false),
        "quantised" => (512, true),
        other => bail!("model '{other}': there are 'layers' and 'quantised'"),
    };
    let mut state = 1;
    let weight = |_| {
        let values: Vec<f32> = (0..width * width).map(|_| number(&mut state) / (width as f32).sqrt()).collect();
        let weight = Tensor::from_vec(values, (width, width), &Device::Cpu)?;
        Ok(match quantised {
            true => Weight::Quantised(QMatMul::from_qtensor(QTensor::quantize(&weight, GgmlDType::Q4K)?)?),
            false => Weight::F32(weight),
        })
    };
    let weights = (0..LAYERS).map(weight).collect::<Result<_>>()?;
    Ok(Box::new(Layers { model: request.model.clone(), width, weights, state: Layers::zero(width)?, tokens: 0 }))
}
