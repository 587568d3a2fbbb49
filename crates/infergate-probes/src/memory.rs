//! How fast memory can be read, by the patterns in which an engine reads its weights.

use std::hint::black_box;
use std::thread;

use anyhow::Result;

use crate::{best_seconds, huge_buffer};

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
    let mut buffer = huge_buffer::<u64>(words)?;
    // Written once, so that every page is real memory of its own and not the shared page of zeros.
    buffer.resize(words, 1);
    let patterns = [sum::<2>, sum::<4>, sum::<8>].map(|sum: fn(&[u64]) -> u64| {
        best_seconds(REPEATS, || {
            thread::scope(|scope| {
                for words in buffer.chunks(words.div_ceil(threads)) {
                    scope.spawn(move || black_box(sum(black_box(words))));
                }
            });
        })
    });
    let seconds = patterns.into_iter().fold(f64::INFINITY, f64::min);
    Ok(BUFFER_BYTES as f64 / seconds)
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
