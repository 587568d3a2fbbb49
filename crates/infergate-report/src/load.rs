//! What topics derive of a load run.

mod course;
mod digest;
mod feels;
mod pairs;
mod point;
mod view;

pub use course::{FOLLOWED, QUARTERS, Quarter, Uptime};
pub use digest::{Digest, Limited, Pair};
pub use feels::{INSTANT_NS, SLUGGISH_NS, WAITED_FOR_NS, direction, smoothness, wait};
pub use infergate_receipts::Metric;
pub use pairs::Winners;
pub use point::{Point, Rank, Series};
pub use view::{View, has_p99, load_cell, median_cell, percentile_cell};

use infergate_receipts::{LoadReceipt, Outcome};

/// How a run ends whose numbers are not to be used, and why: the order is the gate's. `None` for a sound run.
pub fn unusable(receipt: &LoadReceipt) -> Option<(Outcome, &str)> {
    match (receipt.invalid.first(), receipt.partial) {
        (Some(why), _) => Some((Outcome::Invalid, why.as_str())),
        (None, true) => Some((Outcome::Partial, "the run was cut short")),
        (None, false) => None,
    }
}
