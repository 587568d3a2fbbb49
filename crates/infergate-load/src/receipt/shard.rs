//! Which part of a load a receipt is.

use anyhow::{Result, ensure};
use infergate_core::receipt::limits::at_most;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Clients of one load.
pub const MAX_SHARDS: u32 = 1_000;

/// One of the clients that put a load on together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Refuses shards that no run has.
pub(super) fn validate_shards(shards: &[ShardRecord]) -> Result<()> {
    at_most(shards.len(), MAX_SHARDS as usize, "shards")?;
    for shard in shards {
        let ShardRecord { index, count, run, .. } = shard;
        ensure!(
            (1..=MAX_SHARDS).contains(count) && index < count,
            "there is no shard {index} of {count}; the file was edited"
        );
        ensure!(
            !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "the name of a shard's run is no hash; the file was edited"
        );
    }
    Ok(())
}
