//! Counts the tokens of answers by a model's tokenizer. The model is loaded by a worker, for the command links no engine. The worker
//! waits while a level runs, and counts behind it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use infergate_core::engine::LoadRequest;
use infergate_core::load::RequestRecord;
use infergate_core::worker::{Capability, Client, Patience, Program, WorkerError};

use crate::api::text::AnswerText;

/// Texts in one question to the worker, and their bytes, unless one alone has more.
const TEXTS_AT_ONCE: usize = 1024;
const BYTES_AT_ONCE: usize = 1 << 20;
/// An answer that its limit ended can end within a character, whose first bytes no text shows: as many tokens at the most.
const MOST_HIDDEN_TOKENS: u64 = 3;

/// A worker with its model loaded.
pub struct Tokenizer<'a> {
    client: Client<'a>,
}

impl<'a> Tokenizer<'a> {
    /// Starts `program` and loads the model.
    pub fn open(program: &Program, request: &LoadRequest, cancelled: &'a AtomicBool) -> Result<Self, WorkerError> {
        let (mut client, _) = Client::spawn(&program.open()?, request, Patience::default(), cancelled)?;
        if !client.can(Capability::CountTokens) {
            return Err(WorkerError::Refused(format!(
                "{}: the bench target cannot count the tokens of a text; build it with a newer infergate",
                program.path.display()
            )));
        }
        client.load(request, None)?;
        // Before anything is measured: a model may have no tokenizer.
        client.count_tokens(&["a".to_owned()])?;
        Ok(Self { client })
    }

    /// Writes into each record the number of tokens in its answer. Pieces of a stream hold whole tokens, so that each is counted by
    /// itself: a tokenizer might cut the whole text otherwise than the model wrote it.
    pub fn count(&mut self, records: &mut [RequestRecord], answers: &[AnswerText]) -> Result<(), WorkerError> {
        let mut seen = vec![0; answers.len()];
        let pieces =
            answers.iter().enumerate().flat_map(|(at, answer)| answer.pieces.iter().map(move |text| (at, text)));
        let mut texts: Vec<String> = Vec::new();
        let (mut owners, mut bytes) = (Vec::new(), 0);
        for (owner, text) in pieces {
            if texts.len() == TEXTS_AT_ONCE || bytes + text.len() > BYTES_AT_ONCE {
                self.ask(&mut texts, &mut owners, &mut seen)?;
                bytes = 0;
            }
            bytes += text.len();
            texts.push(text.to_owned());
            owners.push(owner);
        }
        self.ask(&mut texts, &mut owners, &mut seen)?;
        let counted = answers.iter().zip(seen).map(|(answer, seen)| {
            let hidden = |limit: &u64| limit.checked_sub(seen).is_some_and(|hidden| hidden <= MOST_HIDDEN_TOKENS);
            (answer.request, answer.limit_tokens.filter(hidden).unwrap_or(seen))
        });
        let counted: HashMap<u64, u64> = counted.collect();
        for record in records.iter_mut().filter(|record| record.failure.is_none()) {
            record.text_tokens = counted.get(&record.request).copied();
        }
        Ok(())
    }

    /// Adds the tokens of each text to those of its owner, and empties both lists.
    fn ask(&mut self, texts: &mut Vec<String>, owners: &mut Vec<usize>, seen: &mut [u64]) -> Result<(), WorkerError> {
        if !texts.is_empty() {
            let tokens = self.client.count_tokens(texts)?;
            for (owner, tokens) in owners.drain(..).zip(tokens) {
                seen[owner] += tokens;
            }
            texts.clear();
        }
        Ok(())
    }
}
