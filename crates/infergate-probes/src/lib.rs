//! What the hardware gives to loops that do nothing else: the limits a case is compared with, and a measure of drift.
//!
//! Each probe is the best of several short repeats, because everything that disturbs one makes it slower; and it is taken
//! before the first process, and after each. It uses the pages, the threads and the patterns that engines use. Together the
//! probes take half a second. They share the machine's mood with the suite, not its code: never gate on them.
//!
//! A package of its own, so that its loops are optimised in every build of the command, and the rest of it compiles fast.

mod fma;
mod memory;
mod threads;

use anyhow::{Context, Result, ensure};

use infergate_core::receipt::Probes;

/// A huge page where the system has them.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Measures memory read bandwidth and f32 multiply-adds with `threads` threads.
///
/// # Errors
/// When `threads` is 0 or the buffers do not fit into memory.
pub fn run(threads: usize) -> Result<Probes> {
    ensure!(threads > 0, "the probes need at least one thread; ask for `--threads 1` or more");
    Ok(Probes {
        memory_read_bytes_per_s: memory::read_bytes_per_s(threads)?,
        fma_flops_per_s: fma::flops_per_s(threads)?,
    })
}

/// An empty buffer for `len` words, on huge pages where the system has them: an engine asks for them for its weights, and
/// with small ones a probe would see less than the engine gets.
fn huge_buffer(len: usize) -> Result<Vec<u64>> {
    let bytes = len * size_of::<u64>();
    let mut buffer: Vec<u64> = Vec::new();
    let room = len + HUGE_PAGE_BYTES / size_of::<u64>();
    buffer
        .try_reserve_exact(room)
        .with_context(|| format!("the probes need {} MiB of memory; free some", bytes >> 20))?;
    #[cfg(target_os = "linux")]
    {
        let start = buffer.as_ptr().addr();
        let aligned = start.next_multiple_of(HUGE_PAGE_BYTES);
        let whole = (start + room * size_of::<u64>() - aligned) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        // SAFETY: the pages lie within the buffer, and the advice changes nothing of what is in them. A kernel without huge
        // pages refuses it.
        unsafe {
            libc::madvise(buffer.as_mut_ptr().cast::<u8>().add(aligned - start).cast(), whole, libc::MADV_HUGEPAGE);
        }
    }
    Ok(buffer)
}
