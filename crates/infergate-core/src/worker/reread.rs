//! Whether an engine computes a prompt anew that it has just read.

use serde::{Deserialize, Serialize};

use super::{Client, Request, WorkerError};
use crate::case::Case;

/// A known prompt that is so many times as fast as a new one, each time and in each look, was not computed.
const TIMES: f64 = 1.5;
/// What a processor's caches save of a known prompt is less than a share of this.
const LEAST_NS: u64 = 100_000;

/// Answer to [`Request::Reread`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reread {
    /// Time to read the prompt of the case, right after the same prompt, nanoseconds.
    pub known_ns: Vec<u64>,
    /// Time to read a new prompt of the same length, nanoseconds.
    pub new_ns: Vec<u64>,
}

impl Reread {
    /// How many times as fast the known prompt is at least. `None` where that is not clear.
    pub fn times_as_fast(&self) -> Option<f64> {
        let (slowest_ns, fastest_new_ns) = (*self.known_ns.iter().max()?, *self.new_ns.iter().min()?);
        let times = fastest_new_ns as f64 / slowest_ns.max(1) as f64;
        (times >= TIMES && fastest_new_ns >= LEAST_NS).then_some(times)
    }
}

impl Client<'_> {
    /// Times of the prompt of a prepared case, known and new, `count` of each; `skip` new ones were read before.
    ///
    /// # Errors
    /// As [`load`](Self::load); a worker that cannot, or a prompt that has too few different tokens.
    #[inline]
    pub fn reread(&mut self, case: Case, count: usize, skip: usize) -> Result<Reread, WorkerError> {
        let (times, waited): (Reread, _) = self.ask(&Request::Reread { case, count, skip })?;
        if times.known_ns.len() != count || times.new_ns.len() != count {
            return Err(self.broken(&format!("gave other than {count} times of each prompt of {case}")));
        }
        let sum_ns = times.known_ns.iter().chain(&times.new_ns).map(|ns| u128::from(*ns)).sum();
        self.ensure_waited_for(sum_ns, waited)?;
        Ok(times)
    }
}
