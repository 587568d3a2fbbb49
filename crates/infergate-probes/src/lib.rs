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

use std::hint::black_box;

use anyhow::{Context, Result, ensure};

use infergate_core::clock::{Clock, MonotonicClock};
use infergate_core::receipt::Probes;

/// A huge page where the system has them.
const HUGE_PAGE_BYTES: usize = 2 << 20;
const SCALAR_STEPS: u64 = 10_000_000;
const SCALAR_REPEATS: usize = 3;

/// Measures memory read bandwidth and f32 multiply-adds with `threads` threads, and the scalar loop with one.
///
/// # Errors
/// When `threads` is 0 or the buffers do not fit into memory.
pub fn run(threads: usize) -> Result<Probes> {
    ensure!(threads > 0, "the probes need at least one thread; ask for `--threads 1` or more");
    Ok(Probes {
        memory_read_bytes_per_s: memory::read_bytes_per_s(threads)?,
        fma_flops_per_s: fma::flops_per_s(threads)?,
        scalar_ops_per_s: scalar_loop(),
    })
}

/// A chain of multiply and exclusive-or, each waiting for the one before: two operations a step, per second.
fn scalar_loop() -> f64 {
    let seconds = best_seconds(SCALAR_REPEATS, || {
        let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
        for step in 0..SCALAR_STEPS {
            x = (x ^ step).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        black_box(x);
    });
    2.0 * SCALAR_STEPS as f64 / seconds
}

/// The shortest of `repeats`. Never zero, so that a rate is always finite.
fn best_seconds(repeats: usize, mut work: impl FnMut()) -> f64 {
    let clock = MonotonicClock::new();
    let mut best_ns = u64::MAX;
    for _ in 0..repeats {
        let start_ns = clock.now_ns();
        work();
        best_ns = best_ns.min(clock.now_ns() - start_ns);
    }
    best_ns.max(1) as f64 * 1e-9
}

/// An empty buffer for `len` values, on huge pages where the system has them: an engine asks for them for its weights, and
/// with small ones a probe would see less than the engine gets.
fn huge_buffer<T>(len: usize) -> Result<Vec<T>> {
    let bytes = len * size_of::<T>();
    let mut buffer: Vec<T> = Vec::new();
    let room = len + HUGE_PAGE_BYTES / size_of::<T>();
    buffer
        .try_reserve_exact(room)
        .with_context(|| format!("the probes need {} MiB of memory; free some", bytes >> 20))?;
    #[cfg(target_os = "linux")]
    {
        let start = buffer.as_ptr().addr();
        let aligned = start.next_multiple_of(HUGE_PAGE_BYTES);
        let whole = (start + room * size_of::<T>() - aligned) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        // SAFETY: the pages lie within the buffer, and the advice changes nothing of what is in them. A kernel without huge
        // pages refuses it.
        unsafe {
            libc::madvise(buffer.as_mut_ptr().cast::<u8>().add(aligned - start).cast(), whole, libc::MADV_HUGEPAGE);
        }
    }
    Ok(buffer)
}
