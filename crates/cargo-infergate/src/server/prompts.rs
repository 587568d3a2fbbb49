//! Which prompts a run has: a level of each number has prompts of its own.

use infergate_core::load::{PLACES, REPEATED_PROMPTS};

/// The level whose prompt is asked for its output. Those below it have the prompts that windows repeat.
pub const PREPARED: u64 = u64::MAX;

/// Prompts of windows begin here, far from those of single requests.
pub const WINDOWS: u64 = 1 << 40;

/// The level whose prompt is the one that windows repeat `at` that place.
pub const fn repeated(at: u64) -> u64 {
    PREPARED - 1 - at
}

/// What the prompts of a level are made of: those that are always the same are so in all blocks of a run, others in none.
pub const fn seed(of_block: u64, number: u64) -> u64 {
    if number >= PREPARED - REPEATED_PROMPTS { of_block & !PLACES } else { of_block }
}
