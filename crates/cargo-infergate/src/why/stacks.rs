//! Reads what a worker's profiler wrote.

use anyhow::{Context, Result, ensure};
use infergate_core::worker::profile::{HEAD_BYTES, STACK_BYTES};

/// Where a thread was, and the top of its stack.
pub struct Record<'data> {
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// Where the running function returns to.
    #[cfg_attr(not(target_arch = "aarch64"), expect(dead_code, reason = "it is on the stack"))]
    pub link: u64,
    /// From the stack pointer upwards.
    pub stack: &'data [u8],
}

impl Record<'_> {
    /// Eight bytes of the stack that was kept.
    pub fn read(&self, address: u64) -> Result<u64, ()> {
        let at = address.checked_sub(self.stack_pointer).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
        let bytes = self.stack.get(at..).and_then(<[u8]>::first_chunk::<8>).ok_or(())?;
        Ok(u64::from_le_bytes(*bytes))
    }
}

/// All records of a file.
///
/// # Errors
/// One that is cut off, or longer than any can be.
pub fn read(mut bytes: &[u8]) -> Result<Vec<Record<'_>>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().context("what was seen is cut off")?;
        let stack_bytes = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        ensure!(stack_bytes <= STACK_BYTES && stack_bytes <= rest.len(), "what was seen is cut off");
        let (stack, rest) = rest.split_at(stack_bytes);
        let mut registers = head[8..].as_chunks::<8>().0.iter().map(|register| u64::from_le_bytes(*register));
        let mut next = || registers.next().unwrap_or_default();
        let (instruction, stack_pointer, frame_pointer, link) = (next(), next(), next(), next());
        records.push(Record { instruction, stack_pointer, frame_pointer, link, stack });
        bytes = rest;
    }
    Ok(records)
}
