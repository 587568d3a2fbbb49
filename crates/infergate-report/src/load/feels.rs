//! How times feel to a reader, and which way is better.

use infergate_receipts::Metric;

/// Gaps up to this look instant.
pub const INSTANT_NS: f64 = 20e6;
/// Gaps above this look sluggish.
pub const SLUGGISH_NS: f64 = 70e6;
/// A first token up to here seems to be there at once.
const AT_ONCE_NS: f64 = 200e6;
/// Behind this it is waited for.
pub const WAITED_FOR_NS: f64 = 300e6;

/// How a wait for the first token feels.
pub fn wait(ttft_ns: f64) -> &'static str {
    match ttft_ns {
        ns if ns <= AT_ONCE_NS => "at once",
        ns if ns <= WAITED_FOR_NS => "nearly at once",
        _ => "waited for",
    }
}

/// How a stream with this gap feels to its reader.
pub fn smoothness(itl_ns: f64) -> &'static str {
    match itl_ns {
        // Most pieces come together with the one before: what a reader waits for is no gap of the middle.
        ns if ns <= 0.0 => "in bursts",
        ns if ns < INSTANT_NS => "instant",
        ns if ns <= SLUGGISH_NS => "acceptable",
        _ => "sluggish",
    }
}

/// Which way is better, in a sentence.
pub fn direction(metric: Metric) -> &'static str {
    if metric.is_rate() { "More is better." } else { "Less is better." }
}
