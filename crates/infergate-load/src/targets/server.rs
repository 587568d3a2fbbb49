//! A server as a target, or several that are asked in turn.

use std::sync::Arc;

use anyhow::Result;
use infergate_core::worker::WorkerError;

use super::live::Live;
use super::tokenizer::Tokenizer;
use super::{Outcome, Target};
use crate::client::Client;
use crate::plan::LoadPlan;
use crate::receipt::TargetRecord;

/// Servers that were asked for by their URLs.
pub struct ServerTarget<'a> {
    /// Their client.
    pub client: Client,
    /// What the receipt says of each.
    pub records: Vec<TargetRecord>,
    /// What counts the tokens of answers whose texts the client keeps, where one was named.
    pub tokenizer: Option<Tokenizer<'a>>,
}

impl Target for ServerTarget<'_> {
    fn records(&self) -> Vec<TargetRecord> {
        self.records.clone()
    }

    fn now_ns(&self) -> u64 {
        self.client.now_ns()
    }

    fn run_level(&mut self, plan: &LoadPlan, live: &Arc<Live>) -> Result<Outcome> {
        let mut outcome = self.client.run_level(plan, live);
        if let Some(tokenizer) = &mut self.tokenizer {
            match tokenizer.count(&mut outcome.level.requests, &self.client.take_texts()) {
                // Who ends the run wants what there was before.
                Err(WorkerError::Interrupted(_)) if live.is_cancelled() => {}
                counted => counted?,
            }
        }
        Ok(outcome)
    }
}
