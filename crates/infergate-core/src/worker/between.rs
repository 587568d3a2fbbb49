//! The worker's side of [`Idle`]: what it computes between two requests, while the other side of a pair has its turn.

use std::time::Instant;

use super::Request;
use crate::process::processor_ns;
use crate::receipt::Idle;

/// Waiting, waking up and reading a line takes some 10 us, which are the worker's own: they are most of a shorter wait, and nothing of a turn.
const SHORTEST_NS: u64 = 200_000;

/// The waits for a request that follow a timed one.
#[derive(Default)]
pub struct Between {
    /// When the wait began, and the processor time until then.
    begun: Option<(Instant, u64)>,
    sum: Idle,
}

impl Between {
    /// The answer to a request has left.
    pub fn begin(&mut self, is_timed: bool) {
        self.begun = if is_timed { processor_ns().map(|cpu_ns| (Instant::now(), cpu_ns)) } else { None };
    }

    /// A request has come.
    pub fn end(&mut self) {
        let Some((begun, before_ns)) = self.begun.take() else { return };
        let wall_ns = begun.elapsed().as_nanos() as u64;
        if let Some(cpu_ns) = processor_ns().filter(|_| wall_ns >= SHORTEST_NS) {
            self.sum.cpu_ns += cpu_ns.saturating_sub(before_ns);
            self.sum.wall_ns += wall_ns;
        }
    }

    /// All of them so far; `None` where there was none, or the system does not say.
    pub fn sum(&self) -> Option<Idle> {
        (self.sum.wall_ns > 0).then_some(self.sum)
    }
}

/// Whether the answer to `request` is time that a gate compares.
pub fn is_timed(request: &Request) -> bool {
    matches!(request, Request::Sample { .. } | Request::Turn { .. })
}
