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

#[cfg(test)]
mod tests {
    use super::{HEAD_BYTES, read};

    fn record(stack: &[u8]) -> Vec<u8> {
        let mut bytes = 7_u32.to_le_bytes().to_vec();
        bytes.extend((stack.len() as u32).to_le_bytes());
        for register in [10_u64, 1000, 1016, 0] {
            bytes.extend(register.to_le_bytes());
        }
        bytes.extend(stack);
        bytes
    }

    #[test]
    fn a_stack_is_read_where_it_was_kept() {
        let file = [record(&[1; 16]), record(&[])].concat();
        let records = read(&file).expect("two records");
        assert_eq!(records.len(), 2);
        assert_eq!((records[0].instruction, records[0].stack_pointer, records[0].frame_pointer), (10, 1000, 1016));
        assert_eq!(records[0].read(1008), Ok(0x0101_0101_0101_0101));
        for address in [0, 999, 1009, u64::MAX] {
            assert_eq!(records[0].read(address), Err(()));
        }
        assert_eq!(records[1].read(1000), Err(()));
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_refused() {
        let file = record(&[1; 16]);
        assert!((1..file.len()).all(|end| read(&file[..end]).is_err()));
        let mut long = record(&[0; 9000]);
        assert!(read(&long).is_err());
        long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read(&long).is_err());
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..random.usize(..4 * HEAD_BYTES)).map(|_| random.u8(..)).collect();
            let kept: usize = read(&bytes).iter().flatten().map(|record| HEAD_BYTES + record.stack.len()).sum();
            assert!(kept == 0 || kept == bytes.len());
        }
    }
}
