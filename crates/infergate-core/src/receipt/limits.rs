//! The largest numbers and the longest lists of a run. Every sum and square that the gate takes of what lies below them fits its
//! type, memory and a few seconds.

/// The largest count, size in bytes or time in nanoseconds (11 days).
pub const MAX_NUMBER: u64 = 1_000_000_000_000_000;
/// The largest rate or amount of work.
pub const MAX_RATE: f64 = 1e24;
/// Cases of a paired run, all its shards together.
pub const MAX_PAIRED_CASES: usize = 4_000;
/// Cases of a calibration, which replays the looks over all of them thousands of times.
pub const MAX_CALIBRATED_CASES: usize = 64;
/// Blocks of one case: an estimate takes the square of them.
pub const MAX_BLOCKS: usize = 2_000;
/// Runs that a memory phase can be asked for (the key `memory.runs`): a trend takes the square of them.
pub const MAX_MEMORY_RUNS: usize = 5_000;
