//! A window of load on a server as values: what a worker that measures a server is asked for, and what it answers.

use serde::{Deserialize, Serialize};

use super::RequestRecord;

/// So many prompts of a window have an output alone to compare with. A server that keeps the beginnings of prompts computes each of
/// them under load once, the first time.
pub const REPEATED_PROMPTS: u64 = 4;

/// The bits of a server's seed that tell the parts of a run apart: the memory phase, the pilot and each block.
pub const PLACES: u64 = 0xfff;

/// Users in a closed loop, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowPlan {
    /// How many.
    pub users: u32,
    /// How long their first starts are spread over, nanoseconds.
    pub ramp_ns: u64,
    /// For so long after the begin users send requests, nanoseconds, longer than the ramp. What is in flight then may end.
    pub length_ns: u64,
    /// What is still in flight so long after the begin is given up, nanoseconds: a request that starves would not end.
    pub give_up_ns: u64,
    /// Decides the prompts: no other window has the same, and both sides of a pair are given the same number.
    pub number: u64,
    /// Each so many-th request has one of the [prompts](REPEATED_PROMPTS) whose outputs alone were prepared, so that an answer under
    /// load is compared with the one alone; 0: none.
    #[serde(default)]
    pub repeats_each: u64,
}

/// What every request of a window did. Times are nanoseconds since its begin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadWindow {
    /// In the order of their starts.
    pub records: Vec<RequestRecord>,
    /// It ended early, for there were more records than fit an answer.
    #[serde(default)]
    pub full: bool,
}

impl WindowPlan {
    /// Which prepared prompt a request has, if any: a window of a slow server has few, and the very first request is alone. Two windows
    /// after each other begin with other ones, which a server that was started for them has not read yet.
    pub fn repeated(&self, request: u64) -> Option<usize> {
        let repeats = self.repeats_each > 0 && request % self.repeats_each == self.repeats_each / 4;
        let turn = || self.number.wrapping_mul(REPEATED_PROMPTS / 2).wrapping_add(request / self.repeats_each);
        repeats.then(|| (turn() % REPEATED_PROMPTS) as usize)
    }
}
