//! What topics derive of a load run.

mod points;
mod view;

pub use infergate_receipts::Metric;
pub use points::{Point, Series};
pub use view::{View, median_cell, percentile_cell};

use crate::model::Unit;
use crate::units::listed;
use infergate_receipts::Outcome;

/// Up to here a first token seems to come at once, or nearly so.
pub const WAITED_FOR_NS: f64 = 300e6;
/// From this gap on a stream seems to stall.
pub const SLUGGISH_NS: f64 = 70e6;
/// A stream of text that is slower keeps a reader waiting.
pub const READING_TOKENS_PER_S: f64 = 4.0;

/// What a reader makes of a figure: each word holds below its limit, and the last one beyond.
pub struct Feels {
    steps: &'static [(f64, &'static str)],
    last: &'static str,
    /// The word that is bad news; empty for none.
    pub bad: &'static str,
}

pub fn feels(metric: Metric) -> Option<&'static Feels> {
    match metric {
        // Where most pieces come together with the one before, a reader waits for no gap of the middle.
        Metric::Itl => Some(&Feels {
            steps: &[(1.0, "in bursts"), (20e6, "instant"), (SLUGGISH_NS, "acceptable")],
            last: "sluggish",
            bad: "sluggish",
        }),
        Metric::Ttft => Some(&Feels {
            steps: &[(200e6, "at once"), (WAITED_FOR_NS, "nearly at once")],
            last: "waited for",
            bad: "",
        }),
        Metric::DecodeSpeed => Some(&Feels {
            steps: &[(READING_TOKENS_PER_S, "slower than reading"), (7.0, "as fast as reading")],
            last: "faster than reading",
            bad: "slower than reading",
        }),
        _ => None,
    }
}

impl Feels {
    pub fn word(&self, value: f64) -> &'static str {
        self.steps.iter().find(|(limit, _)| value < *limit).map_or(self.last, |(_, word)| word)
    }

    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().map(|(_, word)| *word).chain([self.last])
    }

    /// Where the word changes: `instant below 20.0 ms`.
    pub fn limits(&self, unit: Unit) -> impl Iterator<Item = (String, f64)> {
        let steps = self.steps.iter().filter(|(limit, _)| *limit > 1.0);
        steps.map(move |(limit, word)| (format!("{word} below {}", unit.show(*limit)), *limit))
    }

    pub fn about(&self, unit: Unit) -> String {
        format!("{}, else {}", listed(self.limits(unit).map(|(name, _)| name)), self.last)
    }
}

/// How a run ends whose numbers are not to be used, and why: the order is the gate's. `None` for a sound run.
pub fn unusable(view: &View) -> Option<(Outcome, &str)> {
    match (view.receipt.invalid.first(), view.receipt.partial) {
        (Some(why), _) => Some((Outcome::Invalid, why.as_str())),
        (None, true) => Some((Outcome::Partial, "the run was cut short")),
        (None, false) => None,
    }
}
