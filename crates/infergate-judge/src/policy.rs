//! What counts as worse: [`Policy`].

use super::COUNTER_TOLERANCE;
use infergate_receipts::{Accept, Target};

/// Against a baseline, the chance that any case of an unchanged program is called regressed. One-sided, shared among the cases of the
/// suite (Bonferroni), as for the paired channel.
pub const ALPHA: f64 = 0.01;
/// Against a baseline, no ratio below this is regressed, however quiet the sessions were.
pub const STORED_FLOOR: f64 = 1.10;
/// Against a baseline, a case whose process medians have a larger coefficient of variation is unstable.
pub const CV_LIMIT: f64 = 0.20;
/// Days with a session of this machine class that a baseline needs before its time is judged.
pub const MIN_SESSIONS: usize = 8;

/// The rules of one gate. [`Default`] is what `infergate.toml` says when it says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Whether a run without a comparable baseline is [`NotComparable`](infergate_receipts::Outcome::NotComparable) (exit 4)
    /// instead of advisory (exit 0).
    pub require_baseline: bool,
    /// A counter of bytes may rise by this fraction of base and passes: 0.01. A number of allocations may not rise.
    pub counter_tolerance: f64,
    /// Numbers behind an output that differ by up to this much drifted, and their output did not change: a fraction of the
    /// largest logit. `None`: by the dtype, see [`default_tolerance`](super::output::default_tolerance).
    pub drift_tolerance: Option<f64>,
    /// Absolute limits, whatever base takes.
    pub targets: Vec<Target>,
    /// In a paired run, another output is shown and does not fail.
    pub allow_output_change: bool,
    /// In a paired run, what noise alone left undecided passes.
    pub inconclusive_passes: bool,
    /// In a paired run, intended changes that whoever judges knows of already, in addition to those that the receipt says base has.
    pub accepted_before: Vec<Accept>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            require_baseline: false,
            counter_tolerance: COUNTER_TOLERANCE,
            drift_tolerance: None,
            targets: Vec::new(),
            allow_output_change: false,
            inconclusive_passes: false,
            accepted_before: Vec::new(),
        }
    }
}
