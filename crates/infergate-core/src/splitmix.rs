//! SplitMix64 (Steele et al. 2014): numbers that are the same on every machine and in every later version.

/// From one state to the next.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that a state gives.
#[inline]
pub fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The next number.
#[inline]
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    mixed(*state)
}
