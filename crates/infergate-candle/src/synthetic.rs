//! Seeded weights: any tensor a model asks for, the same on every machine, with nothing downloaded.

use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use infergate_core::splitmix::{STEP, mixed};
use rayon::prelude::*;

/// Standard deviation of an embedding.
const EMBEDDING_STD: f32 = 0.02;
/// Times one over the square root of its narrow side: a matrix's standard deviation.
const MATRIX_GAIN: f32 = 1.4;
/// Values made by one task.
const CHUNK: usize = 1 << 16;

/// Weights made from `seed` and each tensor's name: norm weights are 1, biases 0, all others close to normal, embeddings
/// with a standard deviation of 0.02, matrices with 1.4 over the square root of their narrow side (0.05 for GPT-2).
///
/// Smaller matrices would leave the residual stream to the embedding, and a tied head would repeat the last token for ever.
///
/// Every name exists, in whatever shape it is asked for. A value is an integer times one f32 constant, so it does not
/// depend on the machine or on the number of threads.
pub fn var_builder(seed: u64, dtype: DType) -> VarBuilder<'static> {
    VarBuilder::from_backend(Box::new(Synthetic { seed }), dtype, Device::Cpu)
}

struct Synthetic {
    seed: u64,
}

impl SimpleBackend for Synthetic {
    fn get(&self, shape: Shape, name: &str, _: Init, dtype: DType, device: &Device) -> Result<Tensor> {
        let parts: Vec<&str> = name.split('.').collect();
        let norm = parts.iter().any(|part| part.starts_with("ln_") || part.contains("norm"));
        let tensor = match parts.last() {
            Some(&"bias") => Tensor::zeros(shape, DType::F32, device)?,
            _ if norm => Tensor::ones(shape, DType::F32, device)?,
            _ => {
                let embedding = parts.iter().any(|part| part.contains("embed") || matches!(*part, "wte" | "wpe"));
                let narrow = shape.dims().iter().copied().min().unwrap_or(1).max(1);
                let std = if embedding { EMBEDDING_STD } else { MATRIX_GAIN / (narrow as f32).sqrt() };
                Tensor::from_vec(normal(self.seed, name, shape.elem_count(), std), shape, device)?
            }
        };
        tensor.to_dtype(dtype)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        Err(Error::Msg(format!("synthetic weights: {name} was requested without a shape")))
    }

    fn contains_tensor(&self, _: &str) -> bool {
        true
    }
}

/// `len` values: the sum of four 16-bit uniforms, centred and scaled to the standard deviation `std`.
fn normal(seed: u64, name: &str, len: usize, std: f32) -> Vec<f32> {
    // Four uniforms on 0..65536 sum to a variance of 4 * 65536^2 / 12.
    let scale = std / (65536.0 * (1.0f32 / 3.0).sqrt());
    let stream = name.bytes().fold(mix(seed), |hash, byte| mix(hash ^ u64::from(byte)));
    let mut values = vec![0f32; len];
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, values)| {
        for (i, value) in values.iter_mut().enumerate() {
            let bits = mix(stream.wrapping_add((chunk * CHUNK + i) as u64));
            let sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
            *value = (sum as i32 - 2 * 65535) as f32 * scale;
        }
    });
    values
}

/// [`mixed`], a step further.
fn mix(x: u64) -> u64 {
    mixed(x.wrapping_add(STEP))
}
