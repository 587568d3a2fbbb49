//! What stands in a run's configuration beside its numbers.

/// How each case is warmed up.
pub const WARM_UP: &str =
    "before any time is taken: the whole output twice in the first process, its first 8 tokens in each further one";
/// What an engine without a device computes on.
pub const PROCESSOR: &str = "the processor: the engine names no other";

/// Counts that differ from case to case.
pub fn from_to(least: usize, most: usize) -> String {
    format!("{least} to {most}")
}
