//! Which part of a load a receipt is.

use serde::{Deserialize, Serialize};

/// Clients of one load.
pub const MAX_SHARDS: u32 = 1_000;

/// One of the clients that put a load on together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Which one, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
    /// The name of the run, which its shards have in common and no other run has: a hash of everything that was asked for.
    pub run: String,
    /// When all of them were to begin, nanoseconds since 1970 in UTC.
    pub start_unix_ns: u64,
    /// The moment that times of its receipt count from, nanoseconds since 1970 in UTC, by its machine's clock.
    pub clock_unix_ns: u64,
    /// The machine class of its client.
    pub machine: String,
}
