//! A window of load from a worker that measures a server, its answer checked: what a worker says may be anything.

use super::{Client, Request, WorkerError};
use crate::case::Case;
use crate::load::{LoadWindow, RequestRecord, WindowPlan};

impl Client<'_> {
    /// Puts users on the loaded server for a time.
    ///
    /// # Errors
    /// As [`load`](Self::load), a worker that cannot, or times that cannot be true.
    #[inline]
    pub fn window(&mut self, case: Case, plan: WindowPlan) -> Result<LoadWindow, WorkerError> {
        let (window, waited): (LoadWindow, _) = self.ask(&Request::Window { case, plan })?;
        for (number, record) in window.records.iter().enumerate() {
            check(plan, record)
                .map_err(|wrong| self.broken(&format!("gave a window of load whose request {number} {wrong}")))?;
        }
        let last_ns = window.records.iter().map(|record| record.ended_ns).max().unwrap_or(0);
        self.ensure_waited_for(u128::from(last_ns), waited)?;
        Ok(window)
    }
}

fn check(plan: WindowPlan, record: &RequestRecord) -> Result<(), &'static str> {
    let ensure = |good: bool, wrong: &'static str| if good { Ok(()) } else { Err(wrong) };
    ensure(record.user < plan.users, "is of a user that there is not")?;
    let starts = [record.scheduled_ns, record.sent_ns];
    let times = starts.iter().chain(&record.chunk_ns).chain([&record.ended_ns]);
    ensure(times.is_sorted(), "has times that go back")?;
    let counted = record.chunk_tokens.is_empty() || record.chunk_tokens.len() == record.chunk_ns.len();
    ensure(counted, "has another number of pieces than of times")?;
    let detail = record.failure.as_ref().map_or("", |failure| &failure.detail);
    ensure(!detail.chars().any(char::is_control), "failed with control characters")
}
