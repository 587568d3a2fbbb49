//! What a process computes while nobody waits for it.

use serde::{Deserialize, Serialize};

/// Processor time of a process between its answer to a timed request and the next request, summed over all of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Idle {
    /// Processor time of all its threads, nanoseconds.
    pub cpu_ns: u64,
    /// The same time by the clock, nanoseconds.
    pub wall_ns: u64,
}

impl Idle {
    /// Cores in use: 1 is one core all the time. `None` where no time passed.
    pub fn cores(self) -> Option<f64> {
        (self.wall_ns > 0).then(|| self.cpu_ns as f64 / self.wall_ns as f64)
    }
}
