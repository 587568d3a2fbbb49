//! [`SafeTensorFiles`]: the weights in one safetensors file or in several shards, read as f32.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Result;
use candle_core::safetensors::MmapedSafetensors;
use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use safetensors::tensor::Dtype;

/// Open safetensors files.
pub struct SafeTensorFiles {
    files: MmapedSafetensors,
    /// The shape of each weight.
    pub shapes: HashMap<String, Vec<usize>>,
}

impl SafeTensorFiles {
    /// Reads the headers of `files`.
    ///
    /// # Errors
    /// When a file is missing, no safetensors, damaged or truncated.
    pub fn open(files: &[PathBuf]) -> Result<Self> {
        // SAFETY: as of every mapped file, nobody may change it meanwhile. The files are the user's own.
        let files = unsafe { MmapedSafetensors::multi(files) }?;
        // Masks and position tables of old checkpoints come as integers; no weight asked for is one.
        let is_float = |dtype| matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16);
        let weights = files.tensors().into_iter().filter(|(_, view)| is_float(view.dtype()));
        let shapes = weights.map(|(name, view)| (name, view.shape().to_vec())).collect();
        Ok(Self { files, shapes })
    }

    /// The weights in f32, each read when it is asked for.
    pub fn weights(self) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.files), DType::F32, Device::Cpu)
    }
}
