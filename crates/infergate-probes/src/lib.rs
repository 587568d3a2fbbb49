//! What the hardware gives to loops that do nothing else: the limits a case is compared with, and a measure of drift.
//!
//! Each probe is the best of several short repeats, because everything that disturbs one makes it slower; and it is taken
//! before the first process, and after each. It uses the pages, the threads and the patterns that engines use. Together the
//! probes take half a second. They share the machine's mood with the suite, not its code: never gate on them.
//!
//! A package of its own, so that its loops are optimised in every build of the command, and the rest of it compiles fast.

mod memory;
mod threads;

use std::hint::black_box;

use anyhow::{Context, Result, ensure};

use infergate_core::clock::{Clock, MonotonicClock};
use infergate_core::receipt::Probes;

/// A huge page where the system has them.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Square, large enough to be bound by arithmetic.
const MATRIX_SIDE: usize = 1024;
const MATRIX_REPEATS: usize = 8;
const SCALAR_STEPS: u64 = 10_000_000;
const SCALAR_REPEATS: usize = 3;

/// Measures memory read bandwidth and the f32 matrix product with `threads` threads, and the scalar loop with one.
///
/// # Errors
/// When `threads` is 0 or the buffers do not fit into memory.
pub fn run(threads: usize) -> Result<Probes> {
    ensure!(threads > 0, "the probes need at least one thread; ask for `--threads 1` or more");
    Ok(Probes {
        memory_read_bytes_per_s: memory::read_bytes_per_s(threads)?,
        matrix_flops_per_s: matrix_product(threads)?,
        scalar_ops_per_s: scalar_loop(),
    })
}

/// The `gemm` crate's f32 product of two square matrices, each thread its own rows: 2 n^3 operations, per second. Threads of
/// our own, as the environment may have left the crate's pool with one.
fn matrix_product(threads: usize) -> Result<f64> {
    let n = MATRIX_SIDE;
    let filled = || -> Result<Vec<f32>> {
        let mut matrix = huge_buffer(n * n)?;
        matrix.extend((0..n * n).map(|i| (i % 7) as f32 * 0.125));
        Ok(matrix)
    };
    let (left, right, mut product) = (filled()?, filled()?, filled()?);
    let part = n.div_ceil(threads) * n;
    let right = &right;
    let rows = product.chunks_mut(part).zip(left.chunks(part));
    let parts = rows.map(|(product, left)| {
        move || {
            move |_| {
                multiply(product, left, right, n);
                black_box(&mut *product);
            }
        }
    });
    let seconds = threads::best_seconds(MATRIX_REPEATS, parts.collect())?;
    Ok(2.0 * (n as f64).powi(3) / seconds)
}

/// `product` = `left` `right`, all row-major: some rows of `n` times an `n` by `n` matrix.
fn multiply(product: &mut [f32], left: &[f32], right: &[f32], n: usize) {
    assert!(product.len() == left.len() && right.len() == n * n, "row blocks of one matrix");
    let (rows, row) = (left.len() / n, n as isize);
    // SAFETY: `product` and `left` are `rows` x n, `right` n x n, all row-major and contiguous, and the borrows do not overlap.
    unsafe {
        gemm::gemm(
            rows,
            n,
            n,
            product.as_mut_ptr(),
            1,
            row,
            false,
            left.as_ptr(),
            1,
            row,
            right.as_ptr(),
            1,
            row,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
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
