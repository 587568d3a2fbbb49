//! What is worse: [`Policy`].

use super::COUNTER_TOLERANCE;
use infergate_receipts::{Accept, Target};

/// Against a baseline, the chance that any case of an unchanged program regresses. One-sided, shared among the cases of the suite
/// (Bonferroni), as for the paired channel.
pub const ALPHA: f64 = 0.01;
/// Against a baseline, the ratio up to which nothing regresses, however quiet the sessions were.
pub const STORED_FLOOR: f64 = 1.10;
/// Against a baseline, the coefficient of variation of process medians above which a case is unstable.
pub const CV_LIMIT: f64 = 0.20;
/// Days with a session of this machine class that a baseline needs before its time is judged.
pub const MIN_SESSIONS: usize = 8;

/// The rules of one gate. [`Default`] is for an empty `infergate.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Whether a run without a comparable baseline is [`NotComparable`](infergate_receipts::Outcome::NotComparable) (exit 4)
    /// instead of advisory (exit 0).
    pub require_baseline: bool,
    /// A counter of bytes may rise by this fraction of base and passes: 0.01. A number of allocations may not rise.
    pub counter_tolerance: f64,
    /// Logits that differ by up to this fraction of the largest one are drift, and no changed output. `None`: by the dtype, see
    /// [`default_tolerance`](super::output::default_tolerance).
    pub drift_tolerance: Option<f64>,
    /// Absolute limits, whatever base takes.
    pub targets: Vec<Target>,
    /// In a paired run, a changed output is shown and does not fail.
    pub allow_output_change: bool,
    /// In a paired run, rows that only noise left inconclusive pass.
    pub inconclusive_passes: bool,
    /// In a paired run, intended changes already accepted in the judge's own settings, in addition to those that base has.
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
