//! [`SafeTensorFiles`]: the weights in one safetensors file or in several shards, read as f32.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use candle_core::safetensors::Load as _;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use infergate_core::json;
use infergate_core::receipt::RULES;
use safetensors::tensor::{Dtype, Metadata, SafeTensors};

use crate::OneLine as _;

/// The most a header may take: three thousand weights. The crate that reads it keeps up to forty bytes for one of its own.
const MAX_HEADER_BYTES: u64 = 384 << 10;

/// Safetensors files whose headers fit their lengths. Only headers are read until [`load`](Self::load).
#[derive(Debug)]
pub struct SafeTensorFiles {
    files: Vec<PathBuf>,
    shapes: HashMap<String, Vec<usize>>,
    largest_file_bytes: u64,
}

impl SafeTensorFiles {
    /// Reads the headers of `files`.
    ///
    /// # Errors
    /// When a file is missing, empty, no safetensors, damaged or truncated, or holds what is no floating point number.
    pub fn open(files: Vec<PathBuf>) -> Result<Self> {
        let (mut shapes, mut largest_file_bytes) = (HashMap::new(), 0);
        for path in &files {
            let bytes = read_header(path, &mut shapes).with_context(|| {
                format!("the weights {} are truncated or damaged; download them again", path.display())
            })?;
            largest_file_bytes = bytes.max(largest_file_bytes);
        }
        Ok(Self { files, shapes, largest_file_bytes })
    }

    /// The shape of the weight `name`.
    pub fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.shapes.get(name).cloned()
    }

    /// The names of all weights.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.shapes.keys().cloned()
    }

    /// Bytes that are taken while the weights are read, beside the `kept` ones in f32: each file is read whole, and what the
    /// model does not ask for is in memory as well.
    pub fn loading_bytes(&self, kept: u64) -> u64 {
        let bytes = |shape: &Vec<usize>| shape.iter().fold(4, |bytes: u64, &n| bytes.saturating_mul(n as u64));
        let all = self.shapes.values().map(bytes).fold(0, u64::saturating_add);
        self.largest_file_bytes.saturating_add(all.saturating_sub(kept))
    }

    /// Loads the weights for which `wanted` is true, one file after the other, as f32.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn load(&self, wanted: impl Fn(&str) -> bool) -> Result<VarBuilder<'static>> {
        let mut tensors: HashMap<String, Tensor> = HashMap::new();
        for path in &self.files {
            let bytes = std::fs::read(path).with_context(|| format!("cannot read the weights {}", path.display()))?;
            let file = SafeTensors::deserialize(&bytes)
                .map_err(one_line)
                .with_context(|| format!("the weights {} are damaged; download them again", path.display()))?;
            for (name, view) in file.iter().filter(|(name, _)| wanted(name)) {
                let tensor = view.load(&Device::Cpu).and_then(|t| t.to_dtype(DType::F32)).one_line()?;
                tensors.insert(name.to_owned(), tensor);
            }
        }
        Ok(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu))
    }
}

/// Adds the shapes of the weights in `path`; gives its length.
fn read_header(path: &Path, shapes: &mut HashMap<String, Vec<usize>>) -> Result<u64> {
    let metadata = std::fs::metadata(path)?;
    // Opening a pipe would wait for whoever writes to it.
    ensure!(metadata.is_file(), "it is no regular file");
    let mut file = File::open(path)?;
    let length = metadata.len();
    ensure!(length > 8, "the file has only {length} bytes");
    let mut start = [0_u8; 8];
    file.read_exact(&mut start)?;
    let header_bytes = u64::from_le_bytes(start);
    ensure!(
        header_bytes <= MAX_HEADER_BYTES && header_bytes <= length - 8,
        "the header claims {header_bytes} bytes of a file of {length}, and at most {MAX_HEADER_BYTES} are read"
    );
    let mut header = String::new();
    file.take(header_bytes).read_to_string(&mut header)?;
    let metadata: Metadata = json::read(&header, RULES).context("its header is not what safetensors write")?;
    let (has, needs) = (length - 8 - header_bytes, metadata.data_len() as u64);
    ensure!(has == needs, "the weights need {needs} bytes and the file has {has} behind its header");
    for (name, info) in metadata.tensors() {
        let known = matches!(info.dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16);
        // Masks and position tables of old checkpoints come as integers; no weight asked for is one.
        if known && shapes.insert(name.clone(), info.shape.clone()).is_some() {
            bail!("the weight `{name}` is in more than one file");
        }
    }
    Ok(length)
}

fn one_line(error: safetensors::SafeTensorError) -> anyhow::Error {
    anyhow!("{}", error.to_string().lines().next().unwrap_or("no safetensors file"))
}
