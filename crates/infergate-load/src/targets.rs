//! What load is put on: [`Target`].

pub mod live;
pub mod local;
#[cfg(feature = "client")]
pub mod server;
pub mod tokenizer;

use std::sync::Arc;

use anyhow::Result;

use crate::plan::LoadPlan;
use crate::receipt::{LevelRecord, TargetRecord};
use live::Live;

/// What a level gave.
pub struct Outcome {
    /// Its record.
    pub level: LevelRecord,
    /// It ended early, because it kept as much as it may.
    pub is_full: bool,
}

/// What load is put on.
pub trait Target {
    /// What the receipt says of it: an entry for each of those that requests go to in turn.
    fn records(&self) -> Vec<TargetRecord>;

    /// Nanoseconds since the moment that times of its records count from; 0 where that is the first level's begin.
    fn now_ns(&self) -> u64 {
        0
    }

    /// Runs one level and gives what each of its requests did. Asked to end by `live`, it gives what there is.
    ///
    /// # Errors
    /// When the target itself is gone; requests that fail are in the record.
    fn run_level(&mut self, plan: &LoadPlan, live: &Arc<Live>) -> Result<Outcome>;
}
