//! The header of a GGUF file, read with limits: what candle's own reader would divide by, overflow on or allocate without
//! bound is refused here, and candle gets the result.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use anyhow::{Context, Result, bail, ensure};
use candle_core::Shape;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, DEFAULT_ALIGNMENT, TensorInfo, Value, VersionedMagic};

/// Arrays inside arrays deeper than this are not read.
const MAX_DEPTH: usize = 8;
/// Values in all metadata together, those inside arrays included. The largest vocabularies take a million and a half.
const MAX_VALUES: u64 = 1 << 22;
/// Bytes of all texts together. The largest vocabularies take some ten million.
const MAX_TEXT_BYTES: u64 = 1 << 26;
/// What the values and names may take: so many times the bytes that were read for them, and so much beside those.
const TIMES: u64 = 7;
const BESIDE_BYTES: u64 = 14 << 20;
/// A key or a weight, in a hash table that grows by doubling; its name is a text of its own.
const NAMED_BYTES: u64 = 512;
/// Weights in one file.
const MAX_WEIGHTS: u64 = 1 << 16;
/// Dimensions of a weight, as in ggml.
const MAX_DIMENSIONS: u64 = 4;
/// Weights begin at multiples of this at the most.
const MAX_ALIGNMENT: u64 = 1 << 20;

/// Reads the header from a file of `length` bytes; `file` stands behind the four magic bytes.
///
/// # Errors
/// When the header is damaged, exceeds a limit, names something twice, or a weight does not lie inside the file.
pub fn read(file: impl Read, length: u64) -> Result<Content> {
    let mut header = Header {
        file,
        position: 4,
        length,
        narrow: false,
        values: MAX_VALUES,
        text_bytes: MAX_TEXT_BYTES,
        kept_bytes: 0,
    };
    let magic = match header.number(4)? {
        1 => VersionedMagic::GgufV1,
        2 => VersionedMagic::GgufV2,
        3 => VersionedMagic::GgufV3,
        other => bail!("its version is {other}; versions 1 to 3 are known"),
    };
    header.narrow = magic == VersionedMagic::GgufV1;
    let (weights, entries) = (header.size()?, header.size()?);
    ensure!(weights <= MAX_WEIGHTS, "it claims {weights} weights and no more than {MAX_WEIGHTS} are read");
    let mut metadata = HashMap::new();
    for _ in 0..entries {
        header.keep(NAMED_BYTES)?;
        let key = header.text()?;
        let kind = header.number(4)?;
        let value = header.value(kind, 0).with_context(|| format!("its metadata `{key}` cannot be read"))?;
        ensure!(metadata.insert(key.clone(), value).is_none(), "its metadata has `{key}` twice");
    }
    let alignment = alignment(&metadata)?;
    let mut tensor_infos = HashMap::new();
    for _ in 0..weights {
        header.keep(NAMED_BYTES)?;
        let name = header.text()?;
        let info = header.weight().with_context(|| format!("the weight `{name}` cannot be read"))?;
        ensure!(tensor_infos.insert(name.clone(), info).is_none(), "it has the weight `{name}` twice");
    }
    let content =
        Content { magic, metadata, tensor_infos, tensor_data_offset: header.position.next_multiple_of(alignment) };
    check_extents(&content, length)?;
    Ok(content)
}

fn alignment(metadata: &HashMap<String, Value>) -> Result<u64> {
    let Some(value) = metadata.get("general.alignment") else { return Ok(DEFAULT_ALIGNMENT) };
    let alignment = value.to_u64().ok().or_else(|| u64::try_from(value.to_i32().ok()?).ok());
    let alignment = alignment.context("general.alignment is not a whole number")?;
    ensure!(
        alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT,
        "general.alignment is {alignment} and must be a power of two, at most {MAX_ALIGNMENT}"
    );
    Ok(alignment)
}

/// A header being read, and how much of it may still come.
struct Header<R> {
    file: R,
    position: u64,
    length: u64,
    /// Version 1 writes sizes in four bytes, later ones in eight.
    narrow: bool,
    values: u64,
    text_bytes: u64,
    /// What is kept of it so far.
    kept_bytes: u64,
}

impl<R: Read> Header<R> {
    fn exact<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }

    /// A little-endian number of `bytes` bytes, eight at the most.
    fn number(&mut self, bytes: usize) -> Result<u64> {
        let mut number = [0; 8];
        self.file.read_exact(&mut number[..bytes])?;
        self.position += bytes as u64;
        Ok(u64::from_le_bytes(number))
    }

    fn size(&mut self) -> Result<u64> {
        self.number(if self.narrow { 4 } else { 8 })
    }

    /// A text. Some files end theirs with NUL, which is no part of it.
    fn text(&mut self) -> Result<String> {
        let bytes = self.size()?;
        ensure!(
            bytes <= self.length.saturating_sub(self.position),
            "a text of {bytes} bytes does not lie inside the file"
        );
        let left = self.text_bytes.checked_sub(bytes);
        self.text_bytes = left.with_context(|| format!("its texts have more than {MAX_TEXT_BYTES} bytes"))?;
        self.keep(bytes)?;
        let mut text = vec![0; usize::try_from(bytes)?];
        self.file.read_exact(&mut text)?;
        self.position += bytes;
        while text.last() == Some(&0) {
            text.pop();
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Counts what is kept.
    fn keep(&mut self, bytes: u64) -> Result<()> {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        ensure!(
            self.kept_bytes <= TIMES.saturating_mul(self.position).saturating_add(BESIDE_BYTES),
            "it has more and smaller values than any model, and would fill the memory"
        );
        Ok(())
    }

    fn value(&mut self, kind: u64, depth: usize) -> Result<Value> {
        let left = self.values.checked_sub(1);
        self.values = left.with_context(|| format!("there are more than {MAX_VALUES} values"))?;
        Ok(match kind {
            0 => Value::U8(u8::from_le_bytes(self.exact()?)),
            1 => Value::I8(i8::from_le_bytes(self.exact()?)),
            2 => Value::U16(u16::from_le_bytes(self.exact()?)),
            3 => Value::I16(i16::from_le_bytes(self.exact()?)),
            4 => Value::U32(u32::from_le_bytes(self.exact()?)),
            5 => Value::I32(i32::from_le_bytes(self.exact()?)),
            6 => Value::F32(f32::from_le_bytes(self.exact()?)),
            7 => match self.number(1)? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                other => bail!("{other} is neither true nor false"),
            },
            8 => Value::String(self.text()?),
            9 => {
                ensure!(depth < MAX_DEPTH, "arrays lie inside arrays more than {MAX_DEPTH} deep");
                let (kind, len) = (self.number(4)?, self.size()?);
                ensure!(len <= self.values, "an array of {len} makes more than {MAX_VALUES} values");
                // Grows as it is read: a length that is only claimed costs nothing.
                let mut values = Vec::new();
                self.keep(4 * size_of::<Value>() as u64)?;
                for _ in 0..len {
                    values.push(self.value(kind, depth + 1)?);
                    // As much again where it has just grown.
                    self.keep(2 * size_of::<Value>() as u64)?;
                }
                Value::Array(values)
            }
            10 => Value::U64(u64::from_le_bytes(self.exact()?)),
            11 => Value::I64(i64::from_le_bytes(self.exact()?)),
            12 => Value::F64(f64::from_le_bytes(self.exact()?)),
            other => bail!("a value is of the unknown type {other}"),
        })
    }

    fn weight(&mut self) -> Result<TensorInfo> {
        let dimensions = self.number(4)?;
        ensure!(dimensions <= MAX_DIMENSIONS, "it has {dimensions} dimensions, more than {MAX_DIMENSIONS}");
        let mut shape = (0..dimensions).map(|_| Ok(usize::try_from(self.size()?)?)).collect::<Result<Vec<_>>>()?;
        // GGUF names the innermost dimension first, candle last.
        shape.reverse();
        let ggml_dtype = dtype(self.number(4)?)?;
        Ok(TensorInfo { ggml_dtype, shape: Shape::from(shape), offset: self.number(8)? })
    }
}

fn dtype(number: u64) -> Result<GgmlDType> {
    Ok(match number {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        9 => GgmlDType::Q8_1,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        15 => GgmlDType::Q8K,
        30 => GgmlDType::BF16,
        other => bail!("it is in a quantization candle cannot read (type {other}); use another file"),
    })
}

/// Refuses a weight that does not lie inside a file of `length` bytes.
fn check_extents(content: &Content, length: u64) -> Result<()> {
    let in_order: BTreeMap<_, _> = content.tensor_infos.iter().collect();
    for (name, info) in in_order {
        let elements = info.shape.dims().iter().try_fold(1_usize, |n, &d| n.checked_mul(d));
        let block = info.ggml_dtype.block_size();
        let row = info.shape.dims().last().copied().unwrap_or(1);
        let elements = elements.filter(|_| row.is_multiple_of(block)).with_context(|| {
            format!("the weight `{name}` of shape {:?} does not fill blocks of {block}", info.shape.dims())
        })?;
        let bytes = (elements / block).checked_mul(info.ggml_dtype.type_size()).map(|n| n as u64);
        let end = bytes.and_then(|n| content.tensor_data_offset.checked_add(info.offset)?.checked_add(n));
        match end {
            Some(end) if end <= length => {}
            Some(end) => bail!("the weight `{name}` ends at byte {end} and the file has {length}"),
            None => bail!("the weight `{name}` is larger than any file"),
        }
    }
    Ok(())
}

/// Bytes a weight takes in the file.
pub fn stored_bytes(info: &TensorInfo) -> u64 {
    (info.shape.elem_count() / info.ggml_dtype.block_size() * info.ggml_dtype.type_size()) as u64
}
