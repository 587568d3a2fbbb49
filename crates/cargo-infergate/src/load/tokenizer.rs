//! Counts the tokens of answers by a model's tokenizer. The model is loaded by a worker, for the command links no engine. The worker
//! waits while a level runs, and counts behind it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use infergate::engine::LoadRequest;
use infergate::load::RequestRecord;
use infergate::worker::{Capability, Client, Patience, WorkerError, WorkerFile};

use super::client::AnswerText;
use crate::paired::Program;

/// Texts in one question to the worker.
const TEXTS_AT_ONCE: usize = 64;

/// A worker with its model loaded.
pub struct Tokenizer<'a> {
    client: Client<'a>,
}

impl<'a> Tokenizer<'a> {
    /// Starts `program` and loads the model.
    ///
    /// # Errors
    /// A worker that does not start, load or count; a model without a tokenizer.
    pub fn open(program: &Program, request: &LoadRequest, cancelled: &'a AtomicBool) -> Result<Self, WorkerError> {
        let file = WorkerFile::open(&program.path)?.behind(program.launcher.clone());
        let (mut client, _) = Client::spawn(&file, request, Patience::default(), cancelled)?;
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

    /// Writes into each record the number of tokens in the text that it was answered.
    ///
    /// # Errors
    /// A worker that fails, or was asked to end.
    pub fn count(&mut self, records: &mut [RequestRecord], answers: Vec<AnswerText>) -> Result<(), WorkerError> {
        let mut counted: HashMap<u64, u64> = HashMap::new();
        let (requests, texts): (Vec<u64>, Vec<String>) =
            answers.into_iter().map(|answer| (answer.request, answer.text)).unzip();
        for (requests, texts) in requests.chunks(TEXTS_AT_ONCE).zip(texts.chunks(TEXTS_AT_ONCE)) {
            counted.extend(requests.iter().copied().zip(self.client.count_tokens(texts)?));
        }
        for record in records.iter_mut().filter(|record| record.failure.is_none()) {
            record.text_tokens = counted.get(&record.request).copied();
        }
        Ok(())
    }
}
