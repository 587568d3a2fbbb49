//! Counts the tokens of answers by a model's tokenizer. The model is loaded by a worker, for the command links no engine. The worker
//! waits while a level runs, and counts behind it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use infergate_core::engine::LoadRequest;
use infergate_core::load::RequestRecord;
use infergate_core::worker::{Client, Program, Timeouts, WorkerError};

use crate::api::text::AnswerText;

/// An answer that its limit ended can end within a character, whose first bytes no text shows: as many tokens at the most.
const MOST_HIDDEN_TOKENS: u64 = 3;

/// A worker with its model loaded.
pub struct Tokenizer<'a> {
    client: Client<'a>,
}

impl<'a> Tokenizer<'a> {
    /// Starts `program` and loads the model.
    pub fn open(program: &Program, request: &LoadRequest, cancelled: &'a AtomicBool) -> Result<Self, WorkerError> {
        let (mut client, _) = Client::spawn(&program.open()?, request, Timeouts::default(), cancelled)?;
        client.load(request, None)?;
        // Before anything is measured: a model may have no tokenizer.
        client.count_tokens(&["a".to_owned()])?;
        Ok(Self { client })
    }

    /// Writes into each record the number of tokens in its answer. Pieces of a stream hold whole tokens, so that each is counted by
    /// itself: a tokenizer might cut the whole text otherwise than the model wrote it.
    pub fn count(&mut self, records: &mut [RequestRecord], answers: &[AnswerText]) -> Result<(), WorkerError> {
        let mut counted = HashMap::new();
        for answer in answers {
            let seen: u64 = self.client.count_tokens(&answer.pieces)?.iter().sum();
            let hidden = |limit: &u64| limit.checked_sub(seen).is_some_and(|hidden| hidden <= MOST_HIDDEN_TOKENS);
            counted.insert(answer.request, answer.limit_tokens.filter(hidden).unwrap_or(seen));
        }
        for record in records.iter_mut().filter(|record| record.failure.is_none()) {
            record.text_tokens = counted.get(&record.request).copied();
        }
        Ok(())
    }
}
