//! Load that a worker puts on its engine or on a server, its answer checked.

use std::time::Duration;

use super::{Client, MOST_LINE_BYTES, Request, WorkerError};
use crate::case::Case;
use crate::load::{LevelPlan, LoadLevel, LoadWindow, MOST_ANSWER_BYTES, RequestRecord, WindowPlan};

/// Levels are planned to fit a line, with room for what stands around the records.
const _: () = assert!(MOST_ANSWER_BYTES < MOST_LINE_BYTES);

impl Client<'_> {
    /// Serves the requests of `plan` on the loaded engine.
    ///
    /// # Errors
    /// As [`load`](Self::load), a worker that cannot, [`WorkerError::Invalid`] where a request did not get the output that its
    /// prompt gives alone, or for times that cannot be true.
    #[inline]
    pub fn load_level(&mut self, plan: &LevelPlan) -> Result<LoadLevel, WorkerError> {
        let (level, waited): (LoadLevel, _) = self.ask(&Request::LoadLevel { plan: plan.clone() })?;
        self.check_records(&level.records, waited)?;
        Ok(level)
    }

    /// Puts users on the loaded server for a time.
    ///
    /// # Errors
    /// As [`load`](Self::load), a worker that cannot, or times that cannot be true.
    #[inline]
    pub fn window(&mut self, case: Case, plan: WindowPlan) -> Result<LoadWindow, WorkerError> {
        let (window, waited): (LoadWindow, _) = self.ask(&Request::Window { case, plan })?;
        self.check_records(&window.records, waited)?;
        Ok(window)
    }

    /// Refuses times that go back, or that are longer than the wait for them.
    fn check_records(&self, records: &[RequestRecord], waited: Duration) -> Result<(), WorkerError> {
        for (number, record) in records.iter().enumerate() {
            let starts = [record.scheduled_ns, record.sent_ns];
            if !starts.iter().chain(&record.chunk_ns).chain([&record.ended_ns]).is_sorted() {
                return Err(self.broken(&format!("gave a load whose request {number} has times that go back")));
            }
        }
        let last_ns = records.iter().map(|record| record.ended_ns).max().unwrap_or(0);
        self.ensure_waited_for(last_ns.into(), waited)
    }
}
