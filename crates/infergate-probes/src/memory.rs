//! How fast memory can be read, by the patterns in which an engine reads its weights.

use std::hint::black_box;
use std::mem::MaybeUninit;

use anyhow::Result;

use crate::{huge_buffer, threads::best_seconds};

/// Well above the last-level cache of a usual machine.
const BUFFER_BYTES: usize = 256 << 20;
/// Repeats of each pattern; the suite probes again after each process.
const REPEATS: usize = 3;
/// Words that are added without waiting for each other: additions wait for memory alone.
const LANES: usize = 64;

/// Sums a buffer, each thread its own part, bytes per second: the best of two, four and eight streams a thread, because a matrix
/// product reads several rows at a time and a processor fetches several streams faster than one.
pub fn read_bytes_per_s(threads: usize) -> Result<f64> {
    let words = BUFFER_BYTES / size_of::<u64>();
    let mut buffer = huge_buffer(words)?;
    let patterns: [fn(&[u64]) -> u64; 3] = [sum::<2>, sum::<4>, sum::<8>];
    let of_room = |room| {
        move || {
            let words = written(room);
            move |repeat: usize| {
                black_box(patterns[repeat % patterns.len()](black_box(words)));
            }
        }
    };
    let parts = buffer.spare_capacity_mut()[..words].chunks_mut(words.div_ceil(threads)).map(of_room).collect();
    Ok(BUFFER_BYTES as f64 / best_seconds(REPEATS * patterns.len(), parts)?)
}

/// Written once, so that every page is real memory of its own and not the shared page of zeros; by the thread that reads it, whose
/// processor then has it near.
fn written(room: &mut [MaybeUninit<u64>]) -> &[u64] {
    for word in room.iter_mut() {
        word.write(1);
    }
    // SAFETY: all of them were written, and the borrow is taken over.
    unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), room.len()) }
}

/// The sum of `words`, read as `STREAMS` streams, with the widest vectors of this processor: the command is often built for an
/// older one than the engine.
fn sum<const STREAMS: usize>(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has it.
            return unsafe { sum_avx512::<STREAMS>(words) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it.
            return unsafe { sum_avx2::<STREAMS>(words) };
        }
    }
    sum_in_streams::<STREAMS>(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_avx512<const STREAMS: usize>(words: &[u64]) -> u64 {
    sum_in_streams::<STREAMS>(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2<const STREAMS: usize>(words: &[u64]) -> u64 {
    sum_in_streams::<STREAMS>(words)
}

#[inline(always)]
fn sum_in_streams<const STREAMS: usize>(words: &[u64]) -> u64 {
    let mut sums = [0_u64; LANES];
    let mut add = |chunk: &[u64]| {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    };
    let length = words.len() / (STREAMS * LANES) * LANES;
    for at in (0..length).step_by(LANES) {
        for stream in 0..STREAMS {
            add(&words[stream * length + at..][..LANES]);
        }
    }
    // What does not divide evenly.
    for chunk in words[STREAMS * length..].chunks(LANES) {
        add(chunk);
    }
    sums.iter().fold(0, |total, sum| total.wrapping_add(*sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_reads_every_word() {
        for length in [0, 1, LANES - 1, LANES, 5 * LANES + 3, 1000] {
            let words: Vec<u64> = (0..length as u64).map(|word| word * word + 1).collect();
            let expected: u64 = words.iter().sum();
            for sum in [sum::<1>, sum::<2>, sum::<4>, sum_in_streams::<1>, sum_in_streams::<4>] {
                assert_eq!(sum(&words), expected, "{length}");
            }
        }
    }
}
