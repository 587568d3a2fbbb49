//! Where the time of a gate went.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Wall time of each part of a gate, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Took {
    /// Checking out, building, comparing and linking both sides.
    pub builds_ns: u64,
    /// Comparing outputs, planning, and watching what cases run of what changed.
    pub pilot_ns: u64,
    /// Blocks.
    pub timing_ns: u64,
    /// Memory and allocations.
    pub counting_ns: u64,
    /// Looking for the functions that take the time.
    pub explaining_ns: u64,
}

impl Took {
    /// Adds the time of another bench target.
    pub fn add(&mut self, other: Self) {
        self.builds_ns += other.builds_ns;
        self.pilot_ns += other.pilot_ns;
        self.timing_ns += other.timing_ns;
        self.counting_ns += other.counting_ns;
        self.explaining_ns += other.explaining_ns;
    }

    /// All that measures.
    pub fn measured(&self) -> Duration {
        Duration::from_nanos(self.pilot_ns + self.timing_ns + self.counting_ns)
    }

    /// Each part with its name, in order.
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        [
            ("builds", self.builds_ns),
            ("pilot", self.pilot_ns),
            ("timing", self.timing_ns),
            ("counting", self.counting_ns),
            ("explaining", self.explaining_ns),
        ]
    }
}
