//! What may differ between base and head.

use crate::{COUNTER_TOLERANCE, Policy};
use infergate_receipts::{Accept, Target};

/// What may differ.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedPolicy {
    /// Another output is shown and does not fail.
    pub allow_output_change: bool,
    /// What noise alone left undecided passes.
    pub undecided_passes: bool,
    /// A counter of bytes may rise by this fraction of base and passes.
    pub counter_tolerance: f64,
    /// How far numbers may drift and still be the same output; `None`: by the dtype.
    pub drift_tolerance: Option<f64>,
    /// Absolute limits, whatever base takes.
    pub targets: Vec<Target>,
    /// Intended changes that whoever judges knows of already, beside those that the receipt says base has.
    pub accepted_before: Vec<Accept>,
}

impl Default for PairedPolicy {
    fn default() -> Self {
        Self {
            allow_output_change: false,
            undecided_passes: false,
            counter_tolerance: COUNTER_TOLERANCE,
            drift_tolerance: None,
            targets: Vec::new(),
            accepted_before: Vec::new(),
        }
    }
}

impl From<&Policy> for PairedPolicy {
    fn from(policy: &Policy) -> Self {
        Self {
            allow_output_change: false,
            undecided_passes: false,
            counter_tolerance: policy.counter_tolerance,
            drift_tolerance: policy.drift_tolerance,
            targets: policy.targets.clone(),
            accepted_before: Vec::new(),
        }
    }
}
