//! What one level on an engine gave: [`LoadLevel`].

use serde::{Deserialize, Serialize};

use super::{RequestRecord, Window};

/// What a level gave.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoadLevel {
    /// Every request, by its number.
    pub records: Vec<RequestRecord>,
    /// The time in which the load was what was asked for; `None` where it never was, or an older worker did not say.
    pub steady: Option<Window>,
    /// Requests that the engine had room for at once.
    pub slots: u32,
    /// Most requests that one step worked on.
    pub largest_batch: u32,
    /// Whether a step computes several requests together. `false`: they take turns. `None`: the engine does not say.
    pub batches: Option<bool>,
    /// Memory for the keys and values of one request, bytes. `None`: the engine does not say.
    pub kv_bytes_per_request: Option<u64>,
    /// Requests whose output was computed once more alone, and was the same, up to a near tie.
    pub compared: u32,
    /// Why the level ended before its stop rule said so: the engine failed, or there were more records than fit an answer.
    pub cut_short: Option<String>,
}
