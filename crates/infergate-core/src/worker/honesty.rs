//! Whether the times a worker reports can be true, by the clock of the one who waited for them.
//!
//! Both rules are made so that a slow pipe or a stalled machine never breaks them. A worker that lies by less than they see
//! is not found: see SECURITY.md.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::case::Case;

/// Two clocks of one machine may run apart by this share and this much.
const CLOCK_SHARE: f64 = 0.01;
const CLOCK_NS: f64 = 1e6;

/// What a request may take beside the times in its answer: pipes, threads that wait for a core, an output that is compared.
const OVERHEAD_NS: f64 = 1e8;
/// Requests of a case before its process is judged: the median of fewer could be a burst.
const LEAST_REQUESTS: usize = 8;

/// Refuses times whose sum is longer than the wait for them.
///
/// # Errors
/// What is wrong, in one line.
pub fn ensure_waited_for(reported_ns: u128, waited: Duration) -> Result<(), String> {
    let (reported_ns, waited_ns) = (reported_ns as f64, waited.as_nanos() as f64);
    if reported_ns <= waited_ns * (1.0 + CLOCK_SHARE) + CLOCK_NS {
        return Ok(());
    }
    Err(format!(
        "it reports {:.3} ms for what took {:.3} ms here; fix the worker's clock, or what it does outside `start` and `next`",
        reported_ns / 1e6,
        waited_ns / 1e6
    ))
}

/// The waits of one process that its answers do not explain.
#[derive(Debug, Clone, Default)]
pub struct Honesty {
    /// For each case: requests that leave more than half of the wait unexplained, and all requests.
    unexplained: BTreeMap<Case, (usize, usize)>,
}

impl Honesty {
    /// Notes one answer that is made of timed work, of a request that may have spent `set_up` on what is not timed.
    ///
    /// # Errors
    /// When most requests of the case so far, at least eight, leave more than half of the wait unexplained.
    pub fn note(&mut self, case: Case, reported_ns: u128, waited: Duration, set_up: Duration) -> Result<(), String> {
        let explained_ns = reported_ns as f64 + set_up.as_nanos() as f64 + OVERHEAD_NS;
        let unexplained_ns = waited.as_nanos() as f64 - explained_ns;
        let (odd, seen) = self.unexplained.entry(case).or_default();
        *odd += usize::from(unexplained_ns > reported_ns as f64);
        *seen += 1;
        if *seen < LEAST_REQUESTS || *odd * 2 <= *seen {
            return Ok(());
        }
        Err(format!(
            "{case}: in {odd} of {seen} requests it reports less than half of the time they took here; fix the worker's clock"
        ))
    }
}
