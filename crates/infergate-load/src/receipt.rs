//! The files of load: the receipt of a run, and the sessions of a baseline.

mod limit;
mod load;
pub mod load_baseline;
mod price;
mod scenario;
mod shard;

pub use limit::Limit;
pub use load::{
    AuditRecord, BatchRecord, ErrorNs, LOAD_SCHEMA, LevelRecord, LoadReceipt, MAX_REQUESTS, MAX_TARGETS, MAX_USERS,
    ReceiveRecord, TargetRecord,
};
pub use load_baseline::{LOAD_BASELINE_SCHEMA, LoadBaseline, LoadSession, LoadSessionLevel};
pub use price::Price;
pub use scenario::{MAX_TOKENS, MAX_TURNS, Scenario};
pub use shard::{MAX_SHARDS, ShardRecord};
