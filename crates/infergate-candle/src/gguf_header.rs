//! Checks on a GGUF header that candle leaves out: what would make it panic or allocate without bound.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use anyhow::{Context, Result, bail, ensure};
use candle_core::quantized::gguf_file::{Content, TensorInfo};

/// Arrays inside arrays deeper than this are not read.
const MAX_DEPTH: usize = 8;

/// Walks the metadata to `general.alignment` and refuses zero, by which candle would divide. `file` stands behind the
/// magic bytes. What is damaged otherwise is left for candle to report.
///
/// # Errors
/// When the alignment is no power of two.
pub fn check_alignment<F: Read + Seek>(file: &mut F) -> Result<()> {
    match find_alignment(file) {
        Ok(Some(alignment)) => {
            ensure!(alignment.is_power_of_two(), "general.alignment is {alignment} and must be a power of two");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn find_alignment<F: Read + Seek>(file: &mut F) -> Result<Option<u64>> {
    let version = number(file, 4)?;
    let length_bytes = if version == 1 { 4 } else { 8 };
    number(file, length_bytes)?;
    let entries = number(file, length_bytes)?;
    for _ in 0..entries {
        let key_bytes = number(file, length_bytes)?;
        let is_alignment = if key_bytes == 17 {
            let mut key = [0_u8; 17];
            file.read_exact(&mut key)?;
            &key == b"general.alignment"
        } else {
            skip_bytes(file, key_bytes)?;
            false
        };
        let kind = number(file, 4)?;
        match (is_alignment, scalar_bytes(kind)) {
            (true, Some(bytes)) => return number(file, bytes).map(Some),
            _ => skip(file, kind, length_bytes, 0)?,
        }
    }
    Ok(None)
}

fn skip<F: Read + Seek>(file: &mut F, kind: u64, length_bytes: u64, depth: usize) -> Result<()> {
    match (kind, scalar_bytes(kind)) {
        (_, Some(bytes)) => skip_bytes(file, bytes),
        (8, _) => {
            let bytes = number(file, length_bytes)?;
            skip_bytes(file, bytes)
        }
        (9, _) if depth < MAX_DEPTH => {
            let (kind, len) = (number(file, 4)?, number(file, length_bytes)?);
            if let Some(bytes) = scalar_bytes(kind) {
                return skip_bytes(file, len.checked_mul(bytes).context("array too long")?);
            }
            (0..len).try_for_each(|_| skip(file, kind, length_bytes, depth + 1))
        }
        _ => bail!("unknown value type {kind}"),
    }
}

fn scalar_bytes(kind: u64) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// A little-endian number of `bytes` bytes.
fn number<F: Read>(file: &mut F, bytes: u64) -> Result<u64> {
    let mut buffer = [0_u8; 8];
    file.read_exact(&mut buffer[..usize::try_from(bytes)?])?;
    Ok(u64::from_le_bytes(buffer))
}

fn skip_bytes<F: Seek>(file: &mut F, bytes: u64) -> Result<()> {
    file.seek_relative(i64::try_from(bytes)?)?;
    ensure!(file.stream_position()? < 1 << 40, "beyond any file");
    Ok(())
}

/// Refuses a weight that does not lie inside a file of `length` bytes.
///
/// # Errors
/// Naming the weight.
pub fn check_extents(content: &Content, length: u64) -> Result<()> {
    let in_order: BTreeMap<_, _> = content.tensor_infos.iter().collect();
    for (name, info) in in_order {
        let elements = info.shape.dims().iter().try_fold(1_usize, |n, &d| n.checked_mul(d));
        let block = info.ggml_dtype.block_size();
        let elements = elements.filter(|n| n.is_multiple_of(block)).with_context(|| {
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

/// Bytes a weight takes in the file. Call [`check_extents`] first.
pub fn stored_bytes(info: &TensorInfo) -> u64 {
    (info.shape.elem_count() / info.ggml_dtype.block_size() * info.ggml_dtype.type_size()) as u64
}
