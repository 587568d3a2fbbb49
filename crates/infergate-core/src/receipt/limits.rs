//! The largest numbers and the longest lists that a file may hold. Every sum and square that the gate takes of what lies
//! below them fits its type, memory and a few seconds.

use std::fmt::Display;

use anyhow::{Result, ensure};

/// The largest count, size in bytes or time in nanoseconds (11 days).
pub const MAX_NUMBER: u64 = 1_000_000_000_000_000;
/// The largest rate or amount of work.
pub const MAX_RATE: f64 = 1e24;
/// Cases of a receipt or a session.
pub const MAX_CASES: usize = 4_000;
/// Cases of a paired run, all its shares together.
pub const MAX_PAIRED_CASES: usize = 4_000;
/// Cases of a calibration, which replays the looks over all of them thousands of times.
pub const MAX_CALIBRATED_CASES: usize = 64;
/// Processes of a case, starts of a suite, sessions of a baseline, blocks of a calibration's slowed heads.
pub const MAX_PROCESSES: usize = 10_000;
/// Samples of one case in one process.
pub const MAX_SAMPLES: usize = 1_000_000;
/// Blocks of one case, and gates of a calibration: an estimate takes the square of them.
pub const MAX_BLOCKS: usize = 2_000;
/// Blocks of a paired run, all its shares together: no case takes more than 40, and no share has less than a case.
pub const MAX_ALL_BLOCKS: usize = 40 * MAX_PAIRED_CASES;
/// Slowdowns of a calibration.
pub const MAX_SLOWDOWNS: usize = 16;
/// Runs that a memory phase can be asked for (the key `memory.runs`): a trend takes the square of them.
pub const MAX_MEMORY_RUNS: usize = 5_000;
/// Sentences, counters, settings, call stacks and their frames.
pub const MAX_NOTES: usize = 1_000;

/// Refuses a list of `count` entries that is longer than `most`.
///
/// # Errors
/// Naming `what` is in the list.
pub fn at_most(count: usize, most: usize, what: impl Display) -> Result<()> {
    ensure!(count <= most, "{count} {what} are more than any run has, at most {most} are read; measure again");
    Ok(())
}

/// Refuses a number that no run gives.
///
/// # Errors
/// Naming `what` it counts.
pub fn in_range(numbers: impl IntoIterator<Item = u64>, what: impl Display) -> Result<()> {
    for number in numbers {
        ensure!(number <= MAX_NUMBER, "{what}: {number} is beyond {MAX_NUMBER}, which no run gives; measure again");
    }
    Ok(())
}

/// Refuses a rate or an amount that is not finite, negative, or beyond anything a machine does.
///
/// # Errors
/// Naming `what` it is.
pub fn sound(amounts: impl IntoIterator<Item = f64>, what: impl Display) -> Result<()> {
    for amount in amounts {
        ensure!(
            (0.0..=MAX_RATE).contains(&amount),
            "{what}: {amount} is no number from 0 to {MAX_RATE:e}; measure again"
        );
    }
    Ok(())
}
