//! How many f32 multiply-adds a second the processor does where nothing has to be fetched: the limit of a matrix product.

use std::hint::black_box;

use anyhow::Result;

use crate::threads::best_seconds;

const STEPS: usize = 2_000_000;
const REPEATS: usize = 8;
/// Vectors that do not wait for each other. A multiply-add takes four cycles, and two, on some processors four, begin in each.
const CHAINS: usize = 12;
/// The chains come to rest at `PLUS / (1 - TIMES)`: they neither grow nor vanish.
const START: f32 = 2.0;
const TIMES: f32 = 0.999;
const PLUS: f32 = 0.001;

/// Multiply-adds in registers, two operations each, with the widest vectors of this processor.
pub fn flops_per_s(threads: usize) -> Result<f64> {
    let part = || || |_| run(black_box(STEPS));
    let seconds = best_seconds(REPEATS, (0..threads).map(|_| part()).collect())?;
    Ok(2.0 * (lanes() * CHAINS * STEPS * threads) as f64 / seconds)
}

/// Takes `step` on every chain, again and again.
#[inline(always)]
fn chains<V: Copy>(start: V, steps: usize, step: impl Fn(V) -> V) -> [V; CHAINS] {
    let mut chains = black_box([start; CHAINS]);
    for _ in 0..steps {
        for chain in &mut chains {
            *chain = step(*chain);
        }
    }
    chains
}

#[cfg(target_arch = "x86_64")]
use x86_64::{lanes, run};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        _mm_add_ps, _mm_mul_ps, _mm_set1_ps, _mm256_fmadd_ps, _mm256_set1_ps, _mm512_fmadd_ps, _mm512_set1_ps,
    };
    use std::hint::black_box;

    use super::{PLUS, START, TIMES, chains};

    fn has_avx512() -> bool {
        is_x86_feature_detected!("avx512f")
    }

    fn has_fma() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    /// Numbers in a vector.
    pub fn lanes() -> usize {
        match (has_avx512(), has_fma()) {
            (true, _) => 16,
            (_, true) => 8,
            _ => 4,
        }
    }

    pub fn run(steps: usize) {
        match (has_avx512(), has_fma()) {
            // SAFETY: the processor has it.
            (true, _) => unsafe { avx512(steps) },
            // SAFETY: the processor has both.
            (_, true) => unsafe { avx2(steps) },
            _ => sse2(steps),
        }
    }

    #[target_feature(enable = "avx512f")]
    fn avx512(steps: usize) {
        let (times, plus) = (_mm512_set1_ps(TIMES), _mm512_set1_ps(PLUS));
        black_box(chains(_mm512_set1_ps(START), steps, |chain| _mm512_fmadd_ps(chain, times, plus)));
    }

    #[target_feature(enable = "avx2,fma")]
    fn avx2(steps: usize) {
        let (times, plus) = (_mm256_set1_ps(TIMES), _mm256_set1_ps(PLUS));
        black_box(chains(_mm256_set1_ps(START), steps, |chain| _mm256_fmadd_ps(chain, times, plus)));
    }

    fn sse2(steps: usize) {
        // SAFETY: every processor of this kind has it.
        let (start, times, plus) = unsafe { (_mm_set1_ps(START), _mm_set1_ps(TIMES), _mm_set1_ps(PLUS)) };
        // SAFETY: the same.
        black_box(chains(start, steps, |chain| unsafe { _mm_add_ps(_mm_mul_ps(chain, times), plus) }));
    }
}

#[cfg(target_arch = "aarch64")]
use aarch64::{lanes, run};

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use std::arch::aarch64::{vdupq_n_f32, vfmaq_f32};
    use std::hint::black_box;

    use super::{PLUS, START, TIMES, chains};

    /// Numbers in a vector.
    pub fn lanes() -> usize {
        4
    }

    pub fn run(steps: usize) {
        // SAFETY: every processor of this kind has it.
        unsafe { neon(steps) }
    }

    #[target_feature(enable = "neon")]
    fn neon(steps: usize) {
        let (times, plus) = (vdupq_n_f32(TIMES), vdupq_n_f32(PLUS));
        black_box(chains(vdupq_n_f32(START), steps, |chain| vfmaq_f32(plus, chain, times)));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn lanes() -> usize {
    1
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn run(steps: usize) {
    black_box(chains(START, steps, |chain| chain * TIMES + PLUS));
}
