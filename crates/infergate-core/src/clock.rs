//! The one clock: monotonic nanoseconds.
//!
//! Everything that takes time asks a [`Clock`], so that all of it can be tested without a wall clock.

use std::time::Instant;

/// Monotonic time in nanoseconds since an arbitrary origin.
pub trait Clock: Send + Sync {
    /// Nanoseconds since this clock's origin; never decreases.
    fn now_ns(&self) -> u64;

    /// Returns when [`now_ns`](Self::now_ns) is at least `ns`, busy until then: a thread that sleeps gives its core away and
    /// comes back late.
    fn spin_until_ns(&self, ns: u64);

    /// Whether its time is made up: no time that is taken with it can be compared with a real one.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// The operating system's monotonic clock.
#[derive(Debug, Clone)]
pub struct MonotonicClock {
    origin: Instant,
}

impl Default for MonotonicClock {
    /// A clock whose origin is now.
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for MonotonicClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn spin_until_ns(&self, ns: u64) {
        while self.now_ns() < ns {
            std::hint::spin_loop();
        }
    }
}
