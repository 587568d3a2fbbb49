//! What topics derive of a load run.

mod digest;
mod view;

pub use digest::{Digest, Pair, Point, Rank, Series, Spread, Winners};
pub use infergate_receipts::Metric;
pub use view::{View, load_cell, median_cell, percentile_cell};

use infergate_receipts::{LoadReceipt, Outcome};

/// Gaps up to this look instant.
pub const INSTANT_NS: f64 = 20e6;
/// Gaps above this look sluggish.
pub const SLUGGISH_NS: f64 = 70e6;
/// Behind this a first token is waited for.
pub const WAITED_FOR_NS: f64 = 300e6;

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

/// How a run ends whose numbers are not to be used, and why: the order is the gate's. `None` for a sound run.
pub fn unusable(receipt: &LoadReceipt) -> Option<(Outcome, &str)> {
    match (receipt.invalid.first(), receipt.partial) {
        (Some(why), _) => Some((Outcome::Invalid, why.as_str())),
        (None, true) => Some((Outcome::Partial, "the run was cut short")),
        (None, false) => None,
    }
}
