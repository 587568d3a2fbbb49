//! [`Gguf`]: a GGUF file as a quantized model or dequantized to f32.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;

use crate::config::{Family, LlamaConfig};
use crate::decoder::Decoder;
use crate::transformers;
use crate::weights::{self, Weight};

/// candle looks for a file's alignment in its metadata and divides by it. Here it is looked for in so many first bytes.
const ALIGNMENT_WITHIN_BYTES: u64 = 64 << 10;

/// An open GGUF file.
pub struct Gguf {
    /// Header: metadata and where each weight lies.
    pub content: Content,
    file: BufReader<File>,
}

impl Gguf {
    /// Opens `path` and reads its header.
    ///
    /// # Errors
    /// When the file is missing, no GGUF, or damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let what = path.display();
        let file = File::open(path).with_context(|| format!("cannot open the model file {what}"))?;
        let mut file = BufReader::new(file);
        let mut start = Vec::new();
        file.by_ref().take(ALIGNMENT_WITHIN_BYTES).read_to_end(&mut start)?;
        ensure!(start.starts_with(b"GGUF"), "{what} is not a GGUF file: it does not start with the bytes GGUF");
        ensure!(!is_aligned_to_zero(&start), "{what}: its general.alignment is 0; download it again");
        file.rewind()?;
        let content = Content::read(&mut file)
            .with_context(|| format!("the GGUF file {what} is truncated or damaged; download it again"))?;
        Ok(Self { content, file })
    }

    /// The model's shape.
    ///
    /// # Errors
    /// When the architecture is not supported, metadata is missing, or a weight is missing or has another shape.
    pub fn config(&self) -> Result<LlamaConfig> {
        let name = match self.content.metadata.get("general.architecture") {
            Some(Value::String(name)) => name.as_str(),
            _ => bail!("the GGUF metadata has no general.architecture"),
        };
        let Some(family) = Family::from_name(name) else {
            bail!("architecture `{name}` is not supported from GGUF; supported are llama, qwen2 and qwen3")
        };
        let number = |key: &str| self.number(&format!("{name}.{key}"));
        let required = |key: &str| number(key)?.with_context(|| format!("the GGUF metadata has no {name}.{key}"));
        ensure!(number("expert_count")?.is_none_or(|n| n <= 1), "mixture-of-experts models are not supported");
        if let Some(Value::String(scaling)) = self.content.metadata.get(&format!("{name}.rope.scaling.type")) {
            ensure!(scaling == "none", "rope scaling `{scaling}` is not supported from GGUF; use the safetensors");
        }
        let heads = required("attention.head_count")?;
        let hidden = required("embedding_length")?;
        let head_dim = number("attention.key_length")?.unwrap_or(hidden.checked_div(heads).unwrap_or(0));
        let rotary = number("rope.dimension_count")?.unwrap_or(head_dim);
        ensure!(rotary == head_dim, "rotary positions over {rotary} of {head_dim} dimensions are not supported");
        let embedding = self.content.tensor_infos.get("token_embd.weight");
        let vocab = embedding.and_then(|info| info.shape.dims().first()).copied().unwrap_or(0);
        let config = LlamaConfig {
            family,
            layers: required("block_count")?,
            hidden,
            intermediate: required("feed_forward_length")?,
            heads,
            kv_heads: number("attention.head_count_kv")?.unwrap_or(heads),
            head_dim,
            vocab,
            context: required("context_length")?,
            tied: !self.content.tensor_infos.contains_key("output.weight"),
            norm_eps: f64::from(
                self.float(&format!("{name}.attention.layer_norm_rms_epsilon"))?
                    .with_context(|| format!("the GGUF metadata has no {name}.attention.layer_norm_rms_epsilon"))?,
            ),
            rope_theta: self.float(&format!("{name}.rope.freq_base"))?.unwrap_or(10_000.0),
            rope_scaling: None,
        }
        .checked()?;
        let gguf_name: fn(&Weight) -> &str = |w| &w.gguf;
        let shapes = self.content.tensor_infos.iter().map(|(name, info)| (name.clone(), info.shape.dims().to_vec()));
        weights::check(&config, gguf_name, &shapes.collect())?;
        Ok(config)
    }

    /// The type most weights of the blocks are stored in, for example `q4_1`.
    pub fn dtype(&self) -> String {
        let mut elements: BTreeMap<String, usize> = BTreeMap::new();
        for (_, info) in self.content.tensor_infos.iter().filter(|(name, _)| name.starts_with("blk.")) {
            *elements.entry(dtype_name(info.ggml_dtype)).or_default() += info.shape.elem_count();
        }
        elements.into_iter().max_by_key(|(_, n)| *n).map_or_else(|| "f32".to_owned(), |(name, _)| name)
    }

    /// What the model as stored is computed in, where that is another type: candle widens all weights that are floats.
    pub fn computes_in(&self) -> Option<String> {
        let is_float = |info: &TensorInfo| matches!(info.ggml_dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16);
        let is_widened = self.content.tensor_infos.values().all(is_float) && self.dtype() != "f32";
        is_widened.then(|| "f32".to_owned())
    }

    /// The model as stored, computed on by candle's quantized kernels.
    ///
    /// # Errors
    /// When candle cannot read a weight.
    pub fn quantized(mut self, config: &LlamaConfig) -> Result<Box<dyn Decoder>> {
        let bytes = self.quantized_bytes(config);
        self.fill_defaults(config);
        transformers::quantized(config, self.content, &mut self.file, bytes)
    }

    /// Bytes that the quantized model's weights take in memory, and those of them that are read for each token.
    pub fn quantized_bytes(&self, config: &LlamaConfig) -> (u64, u64) {
        let stored: u64 = self.content.tensor_infos.values().map(stored_bytes).sum();
        let embedding = self.content.tensor_infos.get("token_embd.weight").map_or(0, stored_bytes);
        // The embedding is looked up in f32; the head reads the stored one.
        let embedding_f32 = (config.vocab * config.hidden * size_of::<f32>()) as u64;
        let head_copy = if config.tied { embedding } else { 0 };
        (stored - embedding + embedding_f32 + head_copy, stored - embedding + head_copy)
    }

    /// The weights in f32 under their names in Hugging Face's safetensors.
    ///
    /// # Errors
    /// When candle cannot read a weight.
    pub fn dequantized(mut self, config: &LlamaConfig) -> Result<VarBuilder<'static>> {
        let mut tensors = HashMap::new();
        for weight in weights::weights(config) {
            let stored = self.content.tensor(&mut self.file, &weight.gguf, &Device::Cpu)?;
            let mut tensor = stored.dequantize(&Device::Cpu)?;
            if let Some(heads) = weight.interleaved_heads {
                tensor = halves_apart(&tensor, heads)?;
            }
            tensors.insert(weight.hf, tensor);
        }
        Ok(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu))
    }

    /// Metadata that candle insists on and files may leave out.
    fn fill_defaults(&mut self, config: &LlamaConfig) {
        let name = config.family.name();
        let mut default = |key: &str, value: usize| {
            let value = Value::U32(u32::try_from(value).unwrap_or(u32::MAX));
            self.content.metadata.insert(format!("{name}.{key}"), value);
        };
        default("rope.dimension_count", config.head_dim);
        default("attention.key_length", config.head_dim);
        default("attention.head_count_kv", config.kv_heads);
        self.content.metadata.insert(format!("{name}.rope.freq_base"), Value::F32(config.rope_theta));
    }

    fn number(&self, key: &str) -> Result<Option<usize>> {
        let Some(value) = self.content.metadata.get(key) else { return Ok(None) };
        let number = value.to_u64().ok().or_else(|| value.to_i32().ok().and_then(|n| u64::try_from(n).ok()));
        let number = number.and_then(|n| usize::try_from(n).ok());
        Ok(Some(number.with_context(|| {
            format!("the GGUF metadata {key} is not a whole number; download the file again, or use the safetensors")
        })?))
    }

    fn float(&self, key: &str) -> Result<Option<f32>> {
        let Some(value) = self.content.metadata.get(key) else { return Ok(None) };
        Ok(Some(value.to_f32().ok().with_context(|| {
            format!("the GGUF metadata {key} is not an f32; download the file again, or use the safetensors")
        })?))
    }
}

/// Bytes a weight takes in the file.
fn stored_bytes(info: &TensorInfo) -> u64 {
    (info.shape.elem_count() / info.ggml_dtype.block_size() * info.ggml_dtype.type_size()) as u64
}

fn is_aligned_to_zero(start: &[u8]) -> bool {
    let key = b"general.alignment";
    let at = start.windows(key.len()).position(|bytes| bytes == key);
    // The type of the value, and then the value.
    at.and_then(|at| start.get(at + key.len() + 4..at + key.len() + 8)).is_some_and(|value| value == [0; 4])
}

/// GGUF's Llama rows pair dimension 2i with 2i+1 of a head; Hugging Face's pair i with i + head_dim / 2.
fn halves_apart(tensor: &Tensor, heads: usize) -> candle_core::Result<Tensor> {
    let (rows, columns) = tensor.dims2()?;
    tensor.reshape((heads, rows / heads / 2, 2, columns))?.transpose(1, 2)?.contiguous()?.reshape((rows, columns))
}

/// `Q4_1` as `q4_1`, `Q4K` as `q4_k`: the names llama.cpp uses.
fn dtype_name(dtype: GgmlDType) -> String {
    let name = format!("{dtype:?}").to_lowercase();
    match name.strip_suffix('k') {
        Some(bits) if !bits.ends_with('_') => format!("{bits}_k"),
        _ => name,
    }
}
