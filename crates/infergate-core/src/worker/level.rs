//! A level of load from a worker, its answer checked: what a worker says may be anything.

use super::{Client, MOST_LINE_BYTES, Request, WorkerError};
use crate::load::{Arrivals, LevelPlan, LoadLevel, MOST_ANSWER_BYTES, RequestRecord, Stop, Window};

/// Levels are planned to fit a line, with room for what stands around the records.
const _: () = assert!(MOST_ANSWER_BYTES < MOST_LINE_BYTES);

impl Client<'_> {
    /// Serves the requests of `plan` on the loaded engine. The limit of this answer follows earlier levels: begin with a short
    /// one.
    ///
    /// # Errors
    /// As [`load`](Self::load), a worker that cannot, [`WorkerError::Invalid`] where a request did not get the output that its
    /// prompt gives alone, or for times that cannot be true.
    #[inline]
    pub fn load_level(&mut self, plan: &LevelPlan) -> Result<LoadLevel, WorkerError> {
        let (level, waited): (LoadLevel, _) = self.ask(&Request::LoadLevel { plan: plan.clone() })?;
        check(plan, &level).map_err(|wrong| self.broken(&format!("gave a level of load {wrong}")))?;
        let last_ns = level.records.iter().map(|record| record.ended_ns).max().unwrap_or(0);
        self.ensure_waited_for(u128::from(last_ns), waited)?;
        Ok(level)
    }
}

/// What is wrong with `level` as an answer to `plan`.
fn check(plan: &LevelPlan, level: &LoadLevel) -> Result<(), String> {
    ensure(level.slots == plan.slots, || format!("with {} slots where {} were asked for", level.slots, plan.slots))?;
    ensure(level.largest_batch <= level.slots, || {
        format!("with a batch of {} in {} slots", level.largest_batch, level.slots)
    })?;
    let plain = |text: &str| !text.chars().any(char::is_control);
    ensure(level.cut_short.as_deref().is_none_or(plain), || "whose end has control characters".into())?;
    if let Stop::Requests { count } = plan.stop {
        let measured = level.records.iter().filter(|record| record.measured).count() as u64;
        // One that was built before there was the mark sends exactly so many.
        let given = if level.steady.is_some() { measured } else { level.records.len() as u64 };
        let whole = given == count || (given < count && level.cut_short.is_some());
        ensure(whole, || format!("with {given} requests where {count} were asked for"))?;
    }
    let completed = level.records.iter().filter(|record| record.failure.is_none()).count() as u64;
    let wanted = if level.cut_short.is_some() { 0 } else { completed.min(u64::from(plan.compared)) };
    let compared = u64::from(level.compared);
    ensure((wanted..=completed).contains(&compared), || format!("with {compared} outputs compared of {completed}"))?;
    let mut free_ns = Vec::new();
    let mut scheduled_ns = 0;
    for (number, record) in level.records.iter().enumerate() {
        check_record(plan, number as u64, record)
            .and_then(|()| check_order(plan, record, &mut free_ns, &mut scheduled_ns))
            .and_then(|()| ensure(is_at_load(level, record), || "is measured and did not run at full load".into()))
            .map_err(|wrong| format!("whose request {number} {wrong}"))?;
    }
    Ok(())
}

/// Whether a request that is measured ran in the time in which the load was what was asked for.
fn is_at_load(level: &LoadLevel, record: &RequestRecord) -> bool {
    let within = |window: Window| window.from_ns <= record.scheduled_ns && record.ended_ns <= window.to_ns;
    !record.measured || level.steady.is_some_and(within)
}

/// One request by itself.
fn check_record(plan: &LevelPlan, number: u64, record: &RequestRecord) -> Result<(), String> {
    ensure(record.request == number, || format!("says that it is number {}", record.request))?;
    ensure(record.scenario as usize == plan.scenario(number), || "is of another scenario".into())?;
    let Some(shape) = plan.shape(number) else { return Err("has no scenario".into()) };
    ensure(record.input_tokens == Some(shape.prompt_tokens as u64), || "has another prompt".into())?;
    let tokens = record.chunk_ns.len();
    ensure(record.output_tokens == Some(tokens as u64) && record.chunk_tokens.is_empty(), || {
        "has another number of tokens than of token times".into()
    })?;
    match &record.failure {
        None => {
            ensure(tokens == shape.output_tokens, || {
                format!("has {tokens} tokens where {} were asked for", shape.output_tokens)
            })?;
            ensure(record.output_sha256.as_deref().is_some_and(is_sha256), || "has no SHA-256 of its output".into())?;
        }
        Some(failure) => {
            ensure(tokens <= shape.output_tokens, || "has more tokens than were asked for".into())?;
            let plain = !failure.detail.chars().any(char::is_control);
            ensure(plain && record.output_sha256.is_none(), || "failed in a way that cannot be".into())?;
        }
    }
    let starts = [record.scheduled_ns, record.sent_ns];
    let times = starts.iter().chain(&record.chunk_ns).chain([&record.ended_ns]);
    ensure(times.is_sorted(), || "has times that go back".into())?;
    ensure(record.connected_ns.is_none() && record.first_byte_ns.is_none(), || "has the times of a network".into())
}

/// One request among those before it: a user sends the next one when the last one ended, a schedule is in order.
fn check_order(
    plan: &LevelPlan,
    record: &RequestRecord,
    free_ns: &mut Vec<u64>,
    scheduled_ns: &mut u64,
) -> Result<(), String> {
    match plan.arrivals {
        Arrivals::Closed { users } => {
            ensure(record.user < users, || format!("is of user {} of {users}", record.user))?;
            free_ns.resize(users as usize, 0);
            let free = &mut free_ns[record.user as usize];
            ensure(record.scheduled_ns >= *free, || "begins before its user was free".into())?;
            *free = record.ended_ns;
        }
        Arrivals::Open { .. } => {
            ensure(record.scheduled_ns >= *scheduled_ns, || "was to start before the one before it".into())?;
            *scheduled_ns = record.scheduled_ns;
        }
    }
    Ok(())
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn ensure(good: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if good { Ok(()) } else { Err(wrong()) }
}
