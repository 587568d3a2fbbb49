//! Seeded weights: any tensor a model asks for, the same on every machine, without a download.

use candle_core::{DType, Device, Error, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use rayon::prelude::*;

/// Standard deviation of embeddings.
const EMBEDDING_STD: f32 = 0.02;
/// Standard deviation of every other matrix. Larger than a trained model's start, so that what a block adds outweighs the
/// token it was given and greedy output does not repeat one token for ever.
const MATRIX_STD: f32 = 0.05;
/// Weights one task makes.
const BLOCK: usize = 1 << 16;

/// A [`VarBuilder`] whose tensors are drawn from a generator seeded by `seed` and the tensor's name: norms are 1, biases
/// 0, matrices roughly normal.
pub fn var_builder(seed: u64, dtype: DType) -> VarBuilder<'static> {
    VarBuilder::from_backend(Box::new(Seeded { seed }), dtype, Device::Cpu)
}

struct Seeded {
    seed: u64,
}

impl SimpleBackend for Seeded {
    fn get(&self, shape: Shape, name: &str, _: Init, dtype: DType, device: &Device) -> candle_core::Result<Tensor> {
        let count = shape.elem_count();
        let values = if name.ends_with(".bias") {
            vec![0.0; count]
        } else if shape.rank() == 1 {
            vec![1.0; count]
        } else {
            let embedding = ["wte.weight", "wpe.weight", "embed_tokens.weight"].iter().any(|end| name.ends_with(end));
            normal(self.seed ^ name_hash(name), count, if embedding { EMBEDDING_STD } else { MATRIX_STD })
        };
        Tensor::from_vec(values, shape, device)?.to_dtype(dtype)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle_core::Result<Tensor> {
        Err(Error::Msg(format!("synthetic weights need a shape for `{name}`")))
    }

    fn contains_tensor(&self, name: &str) -> bool {
        // A tied head is the embedding; there is no second one.
        name != "lm_head.weight"
    }
}

/// FNV-1a, Fowler, Noll and Vo.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// `count` values with mean 0 and standard deviation `std`: each the sum of four 16-bit uniforms of one SplitMix64 number.
/// Integers up to one exact conversion, so that no machine rounds differently.
fn normal(seed: u64, count: usize, std: f32) -> Vec<f32> {
    /// sqrt(12 / 4) / 2^16: four uniforms on 0..2^16 have a standard deviation of 2^16 sqrt(4 / 12).
    const UNIT: f32 = 2.642_824_6e-5;
    let mut values = vec![0.0; count];
    values.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
        for (offset, value) in values.iter_mut().enumerate() {
            let z = splitmix(seed, (block * BLOCK + offset) as u64);
            let sum = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);
            *value = (sum as f32 - 131_070.0) * UNIT * std;
        }
    });
    values
}

/// The `index`-th number of SplitMix64 (Steele, Lea and Flood 2014) with this seed.
fn splitmix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
