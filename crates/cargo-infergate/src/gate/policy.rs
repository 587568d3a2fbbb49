//! What counts as worse: [`Policy`].

use super::COUNTER_TOLERANCE;
use super::memory::MemoryPolicy;
use crate::receipt::Target;

/// The rules of one gate. [`Default`] is what `infergate.toml` says when it says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// One-sided level over the whole suite: the chance that any case of an unchanged program is called regressed. Shared
    /// among the cases (Bonferroni). 0.01, as for the paired channel.
    pub alpha: f64,
    /// The stored channel never calls a ratio below this regressed, however quiet the sessions were: 1.10.
    pub stored_floor: f64,
    /// A case whose coefficient of variation over process medians is above this is unstable: 0.20.
    pub cv_limit: f64,
    /// Days with a session of this machine class that a baseline needs before its time is judged: 8.
    pub min_sessions: usize,
    /// Whether a run without a comparable baseline is [`NotComparable`](crate::receipt::Outcome::NotComparable) (exit 4)
    /// instead of advisory (exit 0).
    pub require_baseline: bool,
    /// A counter of bytes may rise by this fraction of base and passes: 0.01. A number of allocations may not rise.
    pub counter_tolerance: f64,
    /// Numbers behind an output that differ by up to this much drifted, and their output did not change: a fraction of the
    /// largest logit. `None`: by the dtype, see [`default_tolerance`](super::output::default_tolerance).
    pub drift_tolerance: Option<f64>,
    /// Absolute limits, whatever the baseline says.
    pub targets: Vec<Target>,
    /// What the memory phase may show.
    pub memory: MemoryPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            alpha: 0.01,
            stored_floor: 1.10,
            cv_limit: 0.20,
            min_sessions: 8,
            require_baseline: false,
            counter_tolerance: COUNTER_TOLERANCE,
            drift_tolerance: None,
            targets: Vec::new(),
            memory: MemoryPolicy::default(),
        }
    }
}
